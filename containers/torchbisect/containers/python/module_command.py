"""The command that runs a module without searching the folder where the user works for modules."""

from __future__ import annotations

# ``python -m`` searches that folder first, and a stranger's scripts may lie there: one named ``queue.py`` would run
# outside of every sandbox. ``-P`` prevents that from Python 3.11 on, and ``-I`` would hide the user's own packages.
_RUN = """\
import sys
sys.path[:] = filter(None, sys.path)
del sys.argv[0]
import runpy
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
"""


def module_command(python: str, module: str, *arguments: str) -> list[str]:
    """Return the command line of a trusted module, as ``python -m module`` but for the search of the working folder."""
    return [python, "-c", _RUN, module, *arguments]
