"""Run a script in a forked child, eager or compiled, under limits.

Modules, in reading order: ``fork``, ``ending``, ``child``, ``child_setup``, ``compile_hook``, ``autograd_hooks``,
``compile_metrics``; the modes of special eager runs ``float64``, ``tie_breaking``, ``deterministic_rng``; and
``processes``, ``output_capture``, ``inductor_cache``, ``prewarm``.
"""
