"""The search over builds; pure functions of verdicts."""
