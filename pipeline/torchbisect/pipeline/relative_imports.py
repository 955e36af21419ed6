"""Modules of a package as scripts: their dotted names, and their relative imports written as absolute ones."""

from __future__ import annotations

import ast
from pathlib import Path

from torchbisect.core.python_text import parse_python


def imports_relatively(source: str) -> bool:
    """Tell whether a module has a relative import."""
    return any(isinstance(node, ast.ImportFrom) and node.level for node in ast.walk(parse_python(source)))


def dotted_name(folder: Path, stem: str) -> tuple[str, Path]:
    """Return the dotted name of a module in a package, and the folder in which the outermost package lies."""
    parts = [stem]
    while (folder / "__init__.py").is_file() and folder != folder.parent:
        parts.insert(0, folder.name)
        folder = folder.parent
    return ".".join(parts), folder


def with_absolute_imports(source: str, module: str) -> str:
    """Return the text of a module with every relative import written as an absolute one, on the same lines."""
    lines = source.encode("utf-8", "surrogatepass").splitlines(keepends=True)
    for node in ast.walk(parse_python(source)):
        if not isinstance(node, ast.ImportFrom) or not node.level:
            continue
        package = module.split(".")[: -node.level]
        line = lines[node.lineno - 1]
        start = line.find(b".", node.col_offset)
        rest = line[start:].lstrip(b". \t")
        dotted = ".".join(package)
        if not package or start < 0:
            continue  # beyond the top of the package, or on two lines: Python says so when it runs
        glue = b"." if node.module else b" "
        lines[node.lineno - 1] = line[:start] + dotted.encode() + glue + rest
    return b"".join(lines).decode("utf-8", "surrogatepass")
