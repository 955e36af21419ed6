"""Values and rules that every part shares: builds, repros, verdicts, traces, errors, exit codes."""
