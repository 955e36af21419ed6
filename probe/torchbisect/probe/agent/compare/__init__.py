"""Compare the recordings of an eager and a compiled run.

Modules, in reading order: ``evidence``, ``comparison``, ``same_exception``, ``records``, ``snapshot_diff``,
``tolerance``, ``stdout_diff``, ``error_histogram``.
"""
