"""The code of a Jupyter notebook as one script: its code cells in order, without shell commands and most magics."""

from __future__ import annotations

import ast
import codecs
import re
from dataclasses import dataclass
from typing import Any

from torchbisect.core.decode import DecodeError, JsonLimits, decode, read_json
from torchbisect.core.errors import InputError
from torchbisect.core.printable import one_line
from torchbisect.core.python_text import parse_python
from torchbisect.pipeline.notebook_magics import cell_as_python, line_as_python, with_awaits_run

# A line of IPython: a magic, a shell command, a help request. Those that only time or capture keep their code.
_MAGIC = re.compile(r"(\s*)(?:\w[\w.,\s]*=\s*)?([%!]{1,2}\w*|\?)(.*)")
_TRANSPARENT_LINE = frozenset({"%time", "%timeit", "%prun"})
_TRANSPARENT_CELL = frozenset({"%%time", "%%timeit", "%%capture", "%%prun", "%%python", "%%python3"})
# Names that IPython has without an import.
_OF_IPYTHON = {"display": "display = print", "get_ipython": "get_ipython = lambda: None"}
# Pictures and tables that a notebook shows are in it too.
_LIMITS = JsonLimits(values=10_000_000, digits=4000)
_LINES = tuple[str, ...]


@dataclass(frozen=True)
class _Cell:
    """A cell; older notebooks have its text as ``input``."""

    cell_type: str
    source: Any = None
    input: Any = ""


@dataclass(frozen=True)
class _Sheet:
    cells: tuple[_Cell, ...] = ()


@dataclass(frozen=True)
class _Notebook:
    """The parts of a notebook that are used."""

    cells: tuple[_Cell, ...] | None = None
    worksheets: tuple[_Sheet, ...] = ()


def notebook_source(data: bytes, name: str, most: int = 2_000_000) -> tuple[str, tuple[str, ...]]:
    """Return the script of a notebook, and a note if something in it was left out.

    Raises:
        InputError: it is no notebook, or there is no code in it, or code of more than ``most`` characters.
    """
    try:
        cells = _code_cells(read_json(data.removeprefix(codecs.BOM_UTF8), _LIMITS))
    except DecodeError as error:
        raise InputError(f"{name} is not a notebook as Jupyter writes it: {error}") from None
    if sum(map(len, cells)) > most:
        raise InputError(f"{name} has more than {most // 1_000_000} MB of code: name a notebook with one script")
    dropped: list[str] = []
    texts = [_without_magics(cell, dropped) for cell in cells]
    source = "\n".join(text.rstrip("\n") + "\n" for text in texts if text.strip())
    if not source:
        raise InputError(f"{name} has no code: name a notebook with the script that fails")
    source = with_awaits_run(_with_names_of_ipython(source))
    shown = ", ".join(dict.fromkeys(one_line(text, 80) for text in dropped[:3])) + (", ..." if len(dropped) > 3 else "")
    notes = (f"{name}: left out what only a notebook can run: {shown}",) if dropped else ()
    return source, notes


def _with_names_of_ipython(source: str) -> str:
    """Define the names of IPython that a notebook uses; ``__future__`` imports stay first."""
    used = [line for name, line in _OF_IPYTHON.items() if re.search(rf"\b{name}\s*\(", source)]
    try:
        statements = parse_python(source).body if used else []
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return source
    if not used:
        return source
    future = [node for node in statements if isinstance(node, ast.ImportFrom) and node.module == "__future__"]
    lines = source.split("\n")
    at = (future[-1].end_lineno or 0) if future else 0
    return "\n".join([*lines[:at], *used, *lines[at:]])


def _code_cells(notebook: Any) -> list[str]:
    """Return the text of each code cell; older notebooks have them in worksheets."""
    found = decode(_Notebook, notebook, "notebook")
    cells = [cell for sheet in found.worksheets for cell in sheet.cells] if found.cells is None else found.cells
    texts = [cell.input if cell.source is None else cell.source for cell in cells if cell.cell_type == "code"]
    return [text if isinstance(text, str) else "".join(decode(_LINES, text, "a cell's source")) for text in texts]


def _without_magics(cell: str, dropped: list[str]) -> str:
    """Return the Python of a cell; what is left out is added to ``dropped``."""
    try:
        parse_python(cell)
        return cell
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        pass
    lines = cell.splitlines()
    first = next((line for line in lines if line.strip()), "").strip()
    if first.startswith("%%"):
        written = cell_as_python(first, cell.lstrip().partition("\n")[2])
        if written is not None:
            return written
        dropped.append(first.split()[0])
        if first.split()[0] not in _TRANSPARENT_CELL:
            return ""
        lines = lines[next(n for n, line in enumerate(lines) if line.strip()) + 1 :]
    return "\n".join(_without_magic(line, dropped) for line in lines) + "\n"


def _without_magic(line: str, dropped: list[str]) -> str:
    stripped = line.strip()
    if stripped.endswith("?") and "#" not in stripped and not stripped.startswith(("'", '"')):
        dropped.append(stripped)
        return line[: len(line) - len(line.lstrip())] + "pass"
    found = _MAGIC.match(line)
    if found is None:
        return line
    indent, magic, rest = found.groups()
    python = line_as_python(magic, rest) if stripped.startswith(magic) else None
    if python is not None:
        return indent + python
    if magic in _TRANSPARENT_LINE and "=" not in line[: line.index(magic)]:
        dropped.append(magic)
        return indent + re.sub(r"^(?:\s+-\S+(?:\s+\d+)?)*\s*", "", rest)
    dropped.append(stripped)
    return f"{indent}pass  # {stripped}"
