"""Find the builds between which a mismatch appeared or disappeared."""
