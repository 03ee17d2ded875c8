"""What problems come to by themselves, before anybody plays them: their own tests, their limits, their uses."""
