"""Trace an eager run: executed lines, values and how to write them as source."""
