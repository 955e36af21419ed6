"""Byte code that environments share: compiled in one, and linked into the next that has the same source.

Compiling the modules that torch.compile imports, mostly torch's own and sympy's, takes ten seconds. Two nightlies
differ in a few dozen of two thousand files. Python checks the kept byte code against its source at each import
(PEP 552, checked hash), so wrong byte code would not be run.

Two releases differ in most of torch's files, and import nearly the same ones. So agents list what they import, and what
is not known of it is compiled on all cores before the next release is imported.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Protocol


class Python(Protocol):
    """The parts of an ``Interpreter`` that byte code depends on; finding one needs this package's temporary folders."""

    @property
    def identity(self) -> str:
        """A digest by which interchangeable ones are recognized."""

    @property
    def major_minor(self) -> tuple[int, int]:
        """Its version, such as ``(3, 11)``."""


#: Script for Python 3.8 and up that saves the byte code of its environment under the digests of the sources, and leaves
#: links to it in the environment.
SAVE_BYTECODE = r"""
import hashlib, os, struct, sys
from importlib.util import source_from_cache, source_hash
site, store = sys.argv[1:]
for folder, _, names in os.walk(site):
    if not folder.endswith("__pycache__"):
        continue
    for name in names:
        place = os.path.join(folder, name)
        try:
            with open(place, "rb") as file:
                compiled = file.read()
            with open(source_from_cache(place), "rb") as file:
                source = file.read()
        except (OSError, ValueError):
            continue
        target = os.path.join(store, hashlib.sha256(source).hexdigest())
        if struct.unpack("<I", compiled[4:8])[0] & 1 or ".opt-" in name:
            continue
        unfinished = "%s.%d" % (target, os.getpid())
        if not os.path.exists(target):
            with open(unfinished, "wb") as file:
                file.write(compiled[:4] + struct.pack("<I", 3) + source_hash(source) + compiled[16:])
            os.replace(unfinished, target)
        try:
            os.link(target, unfinished)
            os.replace(unfinished, place)
        except OSError:  # another run has removed it, or links are not possible: its own file does too
            pass
"""


def bytecode_folder(root: Path, interpreter: Python) -> Path:
    """Return the folder for the byte code of one Python; another Python couldn't read it."""
    return root / interpreter.identity


def link_known_bytecode(store: Path, site: Path, interpreter: Python) -> frozenset[str]:
    """Link the byte code that ``SAVE_BYTECODE`` stored into a site-packages that has none yet.

    Return the modules that have byte code now, as paths below ``site``. Both folders lie on one filesystem.
    """
    known = frozenset(os.listdir(store)) if store.is_dir() else frozenset[str]()
    linked: set[str] = set()
    for source in _modules(site) if known else ():
        digest = hashlib.sha256(source.read_bytes()).hexdigest()
        if digest in known:
            place = _bytecode_of(source, interpreter)
            with contextlib.suppress(OSError):  # Python compiles a module without byte code itself
                place.parent.mkdir(exist_ok=True)
                os.link(store / digest, place)
                linked.add(str(source.relative_to(site)))
    return frozenset(linked)


def imported_modules(lists: Iterable[Path]) -> frozenset[str]:
    """Return the modules that agents have listed (``agent/run/imported_modules.py``), as paths below site-packages."""
    found: set[str] = set()
    for place in lists:
        with contextlib.suppress(OSError, ValueError):
            found.update(place.read_text(encoding="utf-8").splitlines())
    return frozenset(name for name in found if name.endswith(".py") and ".." not in name and not os.path.isabs(name))


def _modules(site: Path) -> Iterator[Path]:
    for folder, _, names in os.walk(site):
        yield from (Path(folder, name) for name in names if name.endswith(".py"))


def _bytecode_of(source: Path, interpreter: Python) -> Path:
    tag = f"cpython-{interpreter.major_minor[0]}{interpreter.major_minor[1]}"
    return source.parent / "__pycache__" / f"{source.stem}.{tag}.pyc"


def remove_unused_bytecode(root: Path) -> int:
    """Remove the byte code that no environment holds a link to; return its bytes on disk."""
    freed = 0
    for place in root.glob("*/*"):
        with contextlib.suppress(OSError):
            status = place.stat()
            if status.st_nlink == 1:
                place.unlink()
                freed += status.st_blocks * 512
    return freed
