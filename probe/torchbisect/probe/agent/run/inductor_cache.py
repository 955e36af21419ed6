"""What inductor made for one run and may use in the next: generated code, compiled kernels, graphs by their hash.

Most candidates of a reduction compile the graphs of the one before, which costs seconds each time. All of it is keyed
by its content, by torch. What autograd keeps of whole graphs, guards included, is not taken over: it knows more of the
script that made it.
"""

from __future__ import annotations

import os
import shutil

KEPT_BYTES = 512 << 20
_OF_ONE_SCRIPT = ("aotautograd", "locks")


def cleared(folder: str, whole: bool) -> None:
    """Leave what the next run may use; nothing unless the last one left it ``whole``: files may be half written."""
    inductor = os.path.join(folder, "inductor")
    for name in _OF_ONE_SCRIPT:
        shutil.rmtree(os.path.join(inductor, name), ignore_errors=True)
    if not whole or _size(folder) > KEPT_BYTES:
        shutil.rmtree(folder, ignore_errors=True)


def _size(folder: str) -> int:
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(place, name)).st_size
            except OSError:
                pass
    return total
