"""The one place that says which torchbisect this is."""

__version__ = "0.1.0"
