"""Find which properties of a shrunk script its mismatch needs."""
