"""Folders in each other, deeper than a path can say."""

from __future__ import annotations

import os
from pathlib import Path


def nest(place: Path, name: str, depth: int) -> None:
    """Make so many folders in each other; the innermost has a file, and nobody may read it."""
    here = os.open(place, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir(name, dir_fd=here)
        below = os.open(name, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(os.open("file", os.O_CREAT, dir_fd=here))
    os.fchmod(here, 0)
    os.close(here)
