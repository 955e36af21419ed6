"""Read an issue: its body, code blocks, stated versions and packages."""
