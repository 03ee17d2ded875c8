"""Where a run happens: all seats in this process, or each in Ray actors of its own."""
