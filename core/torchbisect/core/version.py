"""Version of torchbisect."""

__version__ = "0.2.0"
