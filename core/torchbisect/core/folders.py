"""Walk through folders of strangers, whatever their depth."""

from __future__ import annotations

import os
from collections.abc import Iterator

#: The most folders in each other that are followed. Some of the standard library's functions call themselves for each.
MOST_DEPTH = 100


def walk_folder(top: str | os.PathLike[str]) -> Iterator[tuple[str, list[str], list[str]]]:
    """Yield each folder with the names of its folders, and of its files and links, as ``os.walk`` does.

    The caller may remove names from the list of folders. What is deeper than ``MOST_DEPTH``, or can't be read, is left
    out.
    """
    pending = [(os.fspath(top), 0)]
    while pending:
        place, depth = pending.pop()
        folders: list[str] = []
        files: list[str] = []
        try:
            with os.scandir(place) as entries:
                for entry in entries:
                    (folders if entry.is_dir(follow_symlinks=False) else files).append(entry.name)
        except OSError:
            continue
        yield place, folders, files
        if depth < MOST_DEPTH:
            pending += [(os.path.join(place, name), depth + 1) for name in reversed(folders)]
