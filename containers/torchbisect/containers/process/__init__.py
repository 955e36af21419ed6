"""Processes under limits, ended together with all their children."""
