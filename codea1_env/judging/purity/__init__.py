"""Which company the calls of a program may have, by an allow-list over its text."""
