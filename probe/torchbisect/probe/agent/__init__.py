"""What runs inside the environment under test: standard library and torch only, Python 3.8 and torch 2.0 up."""
