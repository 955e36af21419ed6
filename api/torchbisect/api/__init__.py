"""The ways in from a program: the pytest plugin, and what it is made of.

Importing it imports no torch.
"""
