"""Keep the inductor caches of one run for the next, as most candidates compile the graphs of the previous one.

Torch keys the caches by content. The one of AOTAutograd also depends on the script, so it is not kept.
"""

from __future__ import annotations

import contextlib
import os

from .cleaning import remove
from .written_files import entries_below

MAX_BYTES = 512 << 20
_SCRIPT_SPECIFIC = ("aotautograd", "locks")


def prune(folder: str, is_complete: bool) -> None:
    """Delete the caches that the next run must not use: all of them if the last run was cut short while writing."""
    for name in _SCRIPT_SPECIFIC:
        remove(os.path.join(folder, "inductor", name))
    if not is_complete or _size(folder) > MAX_BYTES:
        remove(folder)


def _size(folder: str) -> int:
    total = 0
    for entry in entries_below(folder):
        with contextlib.suppress(OSError):
            total += entry.stat(follow_symlinks=False).st_size
    return total
