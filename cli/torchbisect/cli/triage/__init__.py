"""The ``triage`` command: many issues through the pipeline of one, each in a process of its own."""
