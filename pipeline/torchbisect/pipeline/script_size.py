"""The size of a script, and of a script together with its modules."""

from __future__ import annotations

import ast
import contextlib

from torchbisect.core.python_text import parse_python
from torchbisect.core.repro import Repro
from torchbisect.probe.module_sources import siblings
from torchbisect.reports.model.report import ScriptSize


def repro_size(repro: Repro) -> ScriptSize:
    """Return the size of a script together with the modules beside it that it imports."""
    sizes = [script_size(repro.source)]
    for text in siblings(repro.source, repro.directory).values():
        with contextlib.suppress(SyntaxError, ValueError, RecursionError):
            sizes.append(script_size(text))
    return ScriptSize(*(sum(getattr(size, name) for size in sizes) for name in ("bytes", "lines", "nodes")))


def script_size(source: str) -> ScriptSize:
    """Return the size of a script."""
    nodes = sum(1 for _ in ast.walk(parse_python(source)))
    return ScriptSize(len(source.encode()), len(source.splitlines()), nodes)
