"""Where a torch lives and runs: builds, indexes, virtual environments, processes. Knows nothing of mismatches."""
