"""Compare the recordings of an eager and a compiled run."""
