"""The stages of a run, one module each."""
