"""The benchmark that others can enter (`codea1 bench`): tracks, entries, their files, and what compares them."""
