"""Classify what two runs of a script showed: the mismatch, its signature, and what is no evidence."""
