"""Graphs that a compiler left behind, as scripts: ``find`` reads them, ``graph_script`` and ``graph_inputs`` write."""
