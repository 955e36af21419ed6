"""Record what crosses each compile boundary during a run."""
