"""Suites as people and models write them: where tests may stand, and claims other than equality."""
