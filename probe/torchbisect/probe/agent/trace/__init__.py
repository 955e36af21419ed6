"""Trace the lines, the calls and the values of an eager run, for the minimizer.

Modules, in reading order: ``tracing``, ``script_syntax``, ``value_source``, ``tensor_source``.
"""
