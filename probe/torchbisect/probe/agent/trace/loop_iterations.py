"""The values that the variables of a script's loops had, for the iterations that ran most of the body."""

from __future__ import annotations

import ast
from typing import Any, Dict, List, NamedTuple, Optional, Set, Tuple

from .scope_paths import path_expression
from .value_source import Expression, ExpressionWriter

MAX_LOOPS = 60
MAX_ITERATIONS = 24  # of one loop
MAX_KEPT = 4


class Loop(NamedTuple):
    """A loop over plain names: its first line, the first and last line of its body, and its variables."""

    line: int
    first: int
    last: int
    names: Tuple[str, ...]


class Iteration(NamedTuple):
    """The values of the variables, and the lines of the body that ran."""

    values: Tuple[Optional[Expression], ...]
    lines: Set[int]


class LoopIterations:
    """The loops of a script and their iterations, as the line events of a trace show them."""

    def __init__(self, tree: ast.AST, writer: ExpressionWriter) -> None:
        self._writer = writer
        self._by_line: Dict[int, List[Loop]] = {}
        for loop in _loops_of(tree):
            for line in range(loop.line, loop.last + 1):
                self._by_line.setdefault(line, []).append(loop)
        self._found: Dict[Tuple[Loop, str], List[Iteration]] = {}
        self._open: Dict[Tuple[int, Loop], Optional[Iteration]] = {}

    def record(self, frame: Any, function: str) -> None:
        """Note the line that a frame is about to run, and the values of the variables on the first of an iteration."""
        for loop in self._by_line.get(frame.f_lineno, ()):
            key = (id(frame), loop)
            if frame.f_lineno >= loop.first and any(name not in frame.f_locals for name in loop.names):
                continue  # a function that is defined in the body
            if frame.f_lineno < loop.first:
                self._open[key] = None
                continue
            current = self._open.get(key)
            if current is None:
                current = self._open[key] = self._begin(frame, function, loop)
            current.lines.add(frame.f_lineno)

    def _begin(self, frame: Any, function: str, loop: Loop) -> Iteration:
        iteration = Iteration(tuple(self._text(frame, loop, name) for name in loop.names), set())
        if (loop, function) in self._found or len(self._found) < MAX_LOOPS:
            found = self._found.setdefault((loop, function), [])
            if len(found) < MAX_ITERATIONS:
                found.append(iteration)
        return iteration

    def _text(self, frame: Any, loop: Loop, name: str) -> Optional[Expression]:
        value = frame.f_locals.get(name)
        return path_expression(value, frame, loop.names) or self._writer.write(value)

    def result(self) -> List[Dict[str, Any]]:
        """Return for each loop a few iterations as ``trace.Iteration`` as JSON, those that ran most lines first."""
        found: List[Dict[str, Any]] = []
        for (loop, function), iterations in sorted(self._found.items()):
            ordered = sorted(enumerate(iterations), key=lambda pair: -len(pair[1].lines))
            for number, item in ordered[:MAX_KEPT]:
                texts = [text.text if text is not None else None for text in item.values]
                place = {"line": loop.line, "function": function, "names": list(loop.names)}
                found.append({**place, "texts": texts, "number": number, "count": len(iterations)})
        return found


def _loops_of(tree: ast.AST) -> List[Loop]:
    found: List[Loop] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.For) and node.body[0].lineno > node.lineno:
            parts = node.target.elts if isinstance(node.target, (ast.Tuple, ast.List)) else [node.target]
            names = tuple(name.id for part in parts for name in ast.walk(part) if isinstance(name, ast.Name))
            found.append(Loop(node.lineno, node.body[0].lineno, getattr(node.body[-1], "end_lineno", 0), names))
    return found
