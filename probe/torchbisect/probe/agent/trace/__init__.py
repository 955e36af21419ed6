"""Trace the calls and the values of an eager run, for the minimizer.

Modules, in reading order: ``tracing``, ``value_source``, ``tensor_source``.
"""
