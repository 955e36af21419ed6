"""Keep the inductor caches of one run for the next: generated code, compiled kernels, and graphs by their hash.

Most candidates of a reduction compile the graphs of the previous one, which would take seconds each time. Torch keys
these caches by content. The cache of AOTAutograd holds whole graphs with their guards and depends on the script, so it
is not kept.
"""

from __future__ import annotations

import os
import shutil

MAX_BYTES = 512 << 20
_SCRIPT_SPECIFIC = ("aotautograd", "locks")


def prune(folder: str, is_complete: bool) -> None:
    """Delete the caches that the next run must not use.

    Args:
        folder: the folder of the caches.
        is_complete: False if the last run was cut short. Its files may be half written, so everything is deleted.
    """
    inductor = os.path.join(folder, "inductor")
    for name in _SCRIPT_SPECIFIC:
        shutil.rmtree(os.path.join(inductor, name), ignore_errors=True)
    if not is_complete or _size(folder) > MAX_BYTES:
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
