"""Byte code that environments share: what was compiled for one is linked into the next that has the same source.

To compile the modules that torch.compile imports, torch's own and sympy's above all, takes ten seconds, and two
nightlies differ in a few dozen of two thousand files. What is kept is byte code that Python itself holds against its
source at each import (PEP 552, checked): a wrong one would be noticed and not run.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from pathlib import Path

from torchbisect.containers.python.interpreter import Interpreter

#: Runs in an environment, of Python 3.8 and up: keeps its byte code under the digest of the source.
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
        if struct.unpack("<I", compiled[4:8])[0] & 1 or ".opt-" in name or os.path.exists(target):
            continue
        unfinished = "%s.%d" % (target, os.getpid())
        with open(unfinished, "wb") as file:
            file.write(compiled[:4] + struct.pack("<I", 3) + source_hash(source) + compiled[16:])
        os.replace(unfinished, target)
"""


def bytecode_folder(root: Path, interpreter: Interpreter) -> Path:
    """Where the byte code of one Python is kept: another's would not be understood."""
    return root / interpreter.identity


def link_known_bytecode(store: Path, site: Path, interpreter: Interpreter) -> float:
    """Link the byte code that is known into an environment that has none yet.

    Args:
        store: what ``SAVE_BYTECODE`` filled.
        site: the environment's site-packages, on the same filesystem.
        interpreter: the environment's Python.

    Returns:
        The share of the modules that have their byte code now.
    """
    known = frozenset(os.listdir(store)) if store.is_dir() else frozenset[str]()
    if not known:
        return 0.0
    tag = f"cpython-{interpreter.major_minor[0]}{interpreter.major_minor[1]}"
    linked = modules = 0
    for folder, _, names in os.walk(site):
        for name in names:
            if not name.endswith(".py"):
                continue
            modules += 1
            digest = hashlib.sha256(Path(folder, name).read_bytes()).hexdigest()
            if digest in known:
                place = Path(folder, "__pycache__", f"{name[:-3]}.{tag}.pyc")
                with contextlib.suppress(OSError):  # without it the module is compiled, no more
                    place.parent.mkdir(exist_ok=True)
                    os.link(store / digest, place)
                    linked += 1
    return linked / modules if modules else 0.0


def remove_unused_bytecode(root: Path) -> None:
    """Remove what no environment holds a link to any more."""
    for place in root.glob("*/*"):
        with contextlib.suppress(OSError):
            if place.stat().st_nlink == 1:
                place.unlink()
