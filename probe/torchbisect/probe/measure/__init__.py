"""Measure a number of a script on two builds, and decide if one is worse than the other."""
