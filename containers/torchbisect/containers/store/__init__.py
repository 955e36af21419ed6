"""Cache on disk: locks, leases, sizes, shared files."""
