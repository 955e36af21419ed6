"""Where a torch is installed and run: indexes, environments, processes. Knows nothing of mismatches."""
