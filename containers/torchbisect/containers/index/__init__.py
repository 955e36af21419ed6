"""Package indexes and the wheels they list."""
