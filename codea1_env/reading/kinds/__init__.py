"""Values of further kinds (`sandbox/inside/value_kinds.py`) on the trusted side: their trees, and their source."""
