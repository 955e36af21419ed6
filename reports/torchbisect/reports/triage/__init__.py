"""Many issues side by side: their rows, which of them are one bug, the database they are kept in, and their page."""
