"""Shows what was found, to a GitHub issue, a terminal or a machine; runs nothing."""
