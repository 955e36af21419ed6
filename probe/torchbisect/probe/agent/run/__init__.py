"""Run a script in a forked child, eager or compiled, under limits."""
