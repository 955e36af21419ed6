"""Install and run a torch in Docker containers."""
