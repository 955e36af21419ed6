"""Capture in place: watch compiled calls where they are made, and write the one that goes wrong as a script.

Modules, in reading order: ``capturing``, ``watch``, ``call_copy``.
"""
