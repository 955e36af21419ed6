"""The agent, which runs scripts inside the environment under test: standard library and torch only.

It supports Python 3.8 and torch 2.0 and later. Read ``server`` first, then the subpackages; each imports only those
listed after it: ``compare``, ``run``, ``trace``, ``capture``.
"""
