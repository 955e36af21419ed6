"""Assertions that make a shrunk script fail under plain python."""
