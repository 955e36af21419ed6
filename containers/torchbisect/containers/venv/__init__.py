"""Install a torch into a virtual environment with uv."""
