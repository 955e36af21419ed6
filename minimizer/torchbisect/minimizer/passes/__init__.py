"""Transformations that make a script smaller, one module each; none imports another."""
