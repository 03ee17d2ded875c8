"""What the baselines need beside the seats: a tester that does not learn, one that is supervised, written tests."""
