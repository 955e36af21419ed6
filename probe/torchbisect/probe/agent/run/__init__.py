"""Run a script in a forked child, eager or compiled, under limits.

Modules, in reading order: ``fork``, ``processes``, ``child``, ``child_setup``, ``compile_hook``, ``compile_metrics``,
``eager_modes``, ``prewarm``, ``inductor_cache``.
"""
