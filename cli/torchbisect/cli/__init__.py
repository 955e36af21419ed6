"""The torchbisect command: arguments, help and exit codes."""
