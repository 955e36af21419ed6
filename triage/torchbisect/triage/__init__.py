"""Many issues: reading them, running them on workers, and the table of what was found."""
