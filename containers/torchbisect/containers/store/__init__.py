"""The cache on disk: locks, leases, sizes, shared files."""
