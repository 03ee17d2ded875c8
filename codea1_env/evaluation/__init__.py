"""How good players, suites and programs are: metrics with their sources, mutants, coverage, tournaments, intervals."""
