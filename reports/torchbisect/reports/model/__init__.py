"""The data of report.json and its JSON schema."""
