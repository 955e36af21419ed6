"""A stranger's folder: its files are named as the modules that a tool imports, and say so if one is imported."""

from __future__ import annotations

import importlib.metadata
import sys
from pathlib import Path

#: A module that writes its name, and the process that imported it.
_MODULE = """\
import _io
with _io.open({record!r}, "a") as record, _io.open("/proc/self/cmdline") as line:
    record.write({name!r} + " by " + line.read().replace("\\0", " ") + "\\n")
raise ImportError("a stranger's module")
"""


def fill_with_modules(folder: Path, record: Path) -> None:
    """Write a module for each of Python's own and of the installed ones; whichever is imported writes to ``record``."""
    record.touch()
    packages = {*sys.stdlib_module_names, *importlib.metadata.packages_distributions(), "sitecustomize"}
    for name in filter(str.isidentifier, packages):
        (folder / f"{name}.py").write_text(_MODULE.format(record=str(record), name=name))
