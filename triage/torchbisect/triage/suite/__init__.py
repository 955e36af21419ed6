"""A test suite on two builds: the tests that fail on one of them only, in groups, each bisected once."""
