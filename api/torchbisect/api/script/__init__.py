"""Write a live call as a script of its own: its code, its values and its options.

Modules, in reading order: ``call_script``, ``modules``, ``writer``, ``definitions``,
``compiler_flags``.
"""
