"""Keep the inductor caches of one run for the next, as most candidates compile the graphs of the previous one.

Torch keys the caches by content. The one of AOTAutograd also depends on the script, so it is not kept.
"""

from __future__ import annotations

import contextlib
import os
import shutil

MAX_BYTES = 512 << 20
_SCRIPT_SPECIFIC = ("aotautograd", "locks")


def prune(folder: str, is_complete: bool) -> None:
    """Delete the caches that the next run must not use: all of them if the last run was cut short while writing."""
    for name in _SCRIPT_SPECIFIC:
        shutil.rmtree(os.path.join(folder, "inductor", name), ignore_errors=True)
    if not is_complete or _size(folder) > MAX_BYTES:
        shutil.rmtree(folder, ignore_errors=True)


def _size(folder: str) -> int:
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                total += os.lstat(os.path.join(place, name)).st_size
    return total
