"""Keep the names of the modules that the agent has imported, so that they can be compiled for the next build.

They are those that torch needs for a compile, whatever the script: only the agent's own imports are in its process.
"""

from __future__ import annotations

import contextlib
import os
import sys

import torch

from .compiler_cache import whole_file

NAME = "imported-modules"


def keep(folder: str) -> None:
    """Add the files of the modules beside torch to the list in a folder, each as a path below site-packages.

    A folder that can't be written to is left as it is.
    """
    site = os.path.dirname(os.path.dirname(os.path.abspath(torch.__file__)))
    files = [getattr(module, "__file__", None) or "" for module in list(sys.modules.values())]
    found = {os.path.relpath(file, site) for file in files if file.startswith(site + os.sep) and file.endswith(".py")}
    place = os.path.join(folder, NAME)
    with contextlib.suppress(OSError):
        known = set()
        if os.path.exists(place):
            with open(place, encoding="utf-8", errors="replace") as file:
                known = set(file.read().splitlines())
        if not found <= known:
            with whole_file(place) as partial, open(partial, "w", encoding="utf-8") as file:
                file.write("\n".join(sorted(found | known)))
