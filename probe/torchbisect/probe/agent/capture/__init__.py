"""Record what crosses each compile boundary during a run.

Modules, in reading order: ``recording``, ``reachable``, ``hook_writes``, ``snapshot``, ``raw_tensor``, ``tape``,
``exceptions``, ``dynamo_skip``.
"""
