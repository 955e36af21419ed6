"""Version of torchbisect."""

__version__ = "0.1.0"
