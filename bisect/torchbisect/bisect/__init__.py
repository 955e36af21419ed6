"""Finds the builds between which a mismatch came or went; runs nothing itself."""
