"""Join a script and its modules into one file."""
