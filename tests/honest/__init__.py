"""Honest programs with tests, judged in plain Python and here: the two must agree."""
