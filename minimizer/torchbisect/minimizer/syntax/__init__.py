"""Python syntax trees: edits, scopes, side effects and torch's names."""
