"""Record what crosses each compile boundary during a run.

Modules, in reading order: ``recording``, ``reachable``, ``snapshot``, ``raw_tensor``, ``tape``, ``exceptions``.
"""
