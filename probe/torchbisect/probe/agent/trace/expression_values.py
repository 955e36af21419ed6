"""The values of the expressions of a script, from a copy of its code that hands each value to a recorder.

``sys.settrace`` shows the names of a frame and what script functions return, and nothing of a call of a library or of
an item. So the traced run executes a tree in which each such expression is an argument of the recorder.
"""

from __future__ import annotations

import ast
import builtins
import collections
import sys
from typing import Any, Dict, List, NamedTuple, Optional, Set, Tuple

from .scope_paths import path_expression
from .value_source import Expression, ExpressionWriter

MAX_EXPRESSIONS = 600
MAX_EVALUATIONS = 3  # of one expression, so that a loop costs nothing
_RECORDER = "__torchbisect_value__"
_RECORDED = (ast.Call, ast.Subscript, ast.BinOp, ast.Compare, ast.BoolOp, ast.IfExp, ast.ListComp, ast.DictComp)
# What a name stands for is recorded where it is an argument, and may have been filled since it was bound.
_CONTAINERS = (dict, list, set, collections.deque)
_ANNOTATIONS = ("annotation", "returns", "decorator_list", "type_params", "bases")


class Place(NamedTuple):
    """The first and last line and column of an expression."""

    line: int
    column: int
    end_line: int
    end_column: int


class ExpressionValues:
    """The expressions of a script, and the text of the value that each had first."""

    def __init__(self, source: str, writer: ExpressionWriter) -> None:
        self._writer = writer
        self._places: List[Place] = []
        self._found: Dict[int, List[Optional[Expression]]] = {}
        recording = _Recording(self._places)
        self.tree: ast.AST = ast.fix_missing_locations(recording.visit(ast.parse(source)))
        self._names = recording.names

    def install(self) -> None:
        """Give the recorder to the script's code, which finds it among the builtins."""
        setattr(builtins, _RECORDER, self._record)

    def _record(self, number: int, value: Any) -> Any:
        if number in self._names and not isinstance(value, _CONTAINERS):
            return value
        seen = self._found.get(number)
        if seen is None:
            if len(self._found) >= MAX_EXPRESSIONS:
                return value
            seen = self._found[number] = []
        if len(seen) < MAX_EVALUATIONS and not (seen and seen[0] is None):
            path = None if number in self._names else path_expression(value, sys._getframe(1))
            seen.append(path or self._writer.write(value))
        return value

    def result(self) -> List[Dict[str, Any]]:
        """Return the values as ``trace.ExpressionValue`` as JSON; one of several values is not exact."""
        found: List[Dict[str, Any]] = []
        for number, texts in sorted(self._found.items()):
            first = texts[0] if texts else None
            if first is not None:
                exact = first.exact and all(item == first for item in texts)
                found.append({**self._places[number]._asdict(), "text": first.text, "exact": exact})
        return found


class _Recording(ast.NodeTransformer):
    """Rewriter of expressions to calls of the recorder. Annotations, patterns and decorators stay as they are."""

    def __init__(self, places: List[Place]) -> None:
        self._places = places
        self.names: Set[int] = set()

    def generic_visit(self, node: ast.AST) -> ast.AST:
        if type(node).__name__ in ("match_case", "JoinedStr", "TypeAlias"):
            return node
        for name, value in ast.iter_fields(node):
            if name in _ANNOTATIONS:
                continue
            if isinstance(value, list):
                value[:] = [self.visit(item) if isinstance(item, ast.AST) else item for item in value]
            elif isinstance(value, ast.AST):
                setattr(node, name, self.visit(value))
        return self._recorded(node) if isinstance(node, _RECORDED) else node

    def _recorded(self, node: Any) -> Any:
        place = _place_of(node)
        is_read = isinstance(getattr(node, "ctx", None) or ast.Load(), ast.Load)
        if place is None or not is_read:
            return node
        self._places.append(place)
        if isinstance(node, ast.Name):
            self.names.add(len(self._places) - 1)
        arguments: List[ast.expr] = [ast.Constant(len(self._places) - 1), node]
        call = ast.Call(func=ast.Name(id=_RECORDER, ctx=ast.Load()), args=arguments, keywords=[])
        return ast.copy_location(call, node)

    def visit_Call(self, node: ast.Call) -> Any:
        self._visit_parts(node)
        return self._recorded(node)

    def _visit_parts(self, node: ast.Call) -> None:
        """Rewrite the parts of a call, its arguments that are names among them."""
        node.func = self.visit(node.func)
        node.args = [self._recorded(item) if isinstance(item, ast.Name) else self.visit(item) for item in node.args]
        for keyword in node.keywords:
            value = keyword.value
            keyword.value = self._recorded(value) if isinstance(value, ast.Name) else self.visit(value)

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        # The value of a statement that is an expression goes nowhere, so only its parts are recorded.
        if isinstance(node.value, ast.Call):
            self._visit_parts(node.value)
            return node
        return self.generic_visit(node)


def _place_of(node: ast.AST) -> Optional[Place]:
    parts: Tuple[Any, ...] = tuple(
        getattr(node, name, None) for name in ("lineno", "col_offset", "end_lineno", "end_col_offset")
    )
    return Place(*parts) if all(isinstance(part, int) for part in parts) else None
