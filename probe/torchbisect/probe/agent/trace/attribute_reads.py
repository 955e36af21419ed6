"""The values of attributes and globals that statements of the script read, such as ``config.width`` or ``WIDTHS``."""

from __future__ import annotations

import ast
import collections
import types
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

import torch

from .scope_paths import MODULE_TABLES
from .value_source import ExpressionWriter

MAX_READS = 400
MAX_EVALUATIONS = 4  # of one read, so that a loop costs nothing


class Read(NamedTuple):
    """A read of a statement: the path of an attribute, or of one name a global, and the statement's last line."""

    path: Tuple[str, ...]
    line: int


class AttributeReads:
    """The reads of a script, and the values that they had; a read that had several values is left out."""

    def __init__(self, tree: ast.AST, writer: ExpressionWriter) -> None:
        self._writer = writer
        self._by_line = _reads_of(tree)
        self._found: Dict[Tuple[Read, str], List[Optional[str]]] = {}

    def record(self, frame: Any, function: str) -> None:
        """Record the values of all reads of the statement that a frame is about to run."""
        for read in self._by_line.get(frame.f_lineno, ()):
            key = (read, function)
            seen = self._found.get(key)
            if seen is None:
                if len(self._found) >= MAX_READS:
                    return
                seen = self._found[key] = []
            if len(seen) < MAX_EVALUATIONS:
                seen.append(self._text(frame, read.path))

    def _text(self, frame: Any, path: Tuple[str, ...]) -> Optional[str]:
        is_global = path[0] not in frame.f_locals and frame.f_code.co_name != "<module>"
        held = frame.f_globals.get(path[0]) if is_global else frame.f_locals.get(path[0])
        if isinstance(held, types.ModuleType) or (len(path) == 1 and not (is_global and isinstance(held, _PLAIN))):
            return None
        for name in path[1:]:
            held = _stored(held, name)
        written = self._writer.write(held) if held is not _ABSENT else None
        return written.text if written is not None and written.exact else None

    def result(self) -> List[Dict[str, Any]]:
        """Return the reads that had one value, as ``trace.Value`` as JSON."""
        found: List[Dict[str, Any]] = []
        for (read, function), texts in sorted(self._found.items()):
            if texts and texts[0] is not None and len(set(texts)) == 1:
                place = {"line": read.line, "function": function, "name": ".".join(read.path)}
                found.append({**place, "text": texts[0], "exact": True})
        return found


_ABSENT = object()
# Numbers and containers. A function that is read as a global is what a call in the script calls.
_PLAIN = (bool, int, float, complex, str, bytes, list, tuple, dict, set, frozenset, collections.deque, torch.dtype)


def _stored(value: Any, name: str) -> Any:
    """Return an attribute that is stored, and not computed by the script's or a library's code."""
    if isinstance(value, tuple) and name in getattr(type(value), "_fields", ()):
        return getattr(value, name)
    try:
        held = object.__getattribute__(value, "__dict__")
    except AttributeError:
        held = {}
    if name in held:
        return held[name]
    for owner in type(value).__mro__:
        if name in vars(owner):
            found = vars(owner)[name]
            return _ABSENT if hasattr(type(found), "__get__") else found
    return _ABSENT


def attributes_of(value: Any, names: Sequence[str]) -> List[Tuple[str, Any]]:
    """Return the attributes of an object with these names that are stored in it, in its module's tables or its class.

    Methods are left out.
    """
    tables = [_stored(value, table) for table in MODULE_TABLES]
    found: List[Tuple[str, Any]] = []
    for name in names if value is not None else ():
        held = next((table[name] for table in tables if isinstance(table, dict) and name in table), _ABSENT)
        held = _stored(value, name) if held is _ABSENT else held
        if held is not _ABSENT:
            found.append((name, held))
    return found


def _reads_of(tree: ast.AST) -> Dict[int, List[Read]]:
    """Return the reads of each statement by its first line; of a compound statement only those of its header."""
    found: Dict[int, List[Read]] = {}
    for statement in ast.walk(tree):
        if not isinstance(statement, ast.stmt) or isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
            continue
        line = getattr(statement, "end_lineno", None) or statement.lineno
        own = [node for child in _expressions(statement) for node in _paths(child)]
        if own:
            reads = found.setdefault(statement.lineno, [])
            reads.extend(Read(path, line) for path in dict.fromkeys(own))
    return found


def _expressions(statement: ast.stmt) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(statement):
        if not isinstance(child, (ast.stmt, ast.ExceptHandler)):
            yield child


def _paths(node: ast.AST) -> Iterator[Tuple[str, ...]]:
    """Yield the longest paths of attributes that an expression reads, and the names that it reads."""
    path = _path(node)
    if path is not None:
        yield path
        return
    for child in ast.iter_child_nodes(node):
        yield from _paths(child)


def _path(node: ast.AST) -> Optional[Tuple[str, ...]]:
    names: List[str] = []
    while isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
        names.append(node.attr)
        node = node.value
    return (node.id, *reversed(names)) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) else None
