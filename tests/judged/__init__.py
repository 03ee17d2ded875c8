"""A small corpus of games, each kind of them in a recording of its name, and the verdicts that the judge gave."""
