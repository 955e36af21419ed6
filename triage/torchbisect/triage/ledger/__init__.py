"""The standing ledger: known bugs, asked again on every new build, and the history of their answers."""
