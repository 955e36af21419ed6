"""Virtual environments on this machine, made with uv."""
