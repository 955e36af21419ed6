"""Shrink a failing script while it keeps showing the same mismatch."""
