"""Untrusted text to programs and suites: the strict grammar of a test, and what is read from a model's response.

Nothing here runs or evaluates what it reads.
"""
