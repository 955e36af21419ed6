"""The values of the expressions of a script, from a copy of its code that hands each value to a recorder.

``sys.settrace`` shows the names of a frame and what script functions return, and nothing of a call of a library or of
an item. So the traced run executes a tree in which each such expression is an argument of the recorder.
"""

from __future__ import annotations

import ast
import builtins
import sys
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from .scope_paths import path_expression
from .value_source import Expression, ExpressionWriter

MAX_EXPRESSIONS = 600
MAX_EVALUATIONS = 3  # of one expression, so that a loop costs nothing
_RECORDER = "__torchbisect_value__"
_RECORDED = (ast.Call, ast.Subscript, ast.BinOp, ast.Compare, ast.BoolOp, ast.IfExp, ast.ListComp, ast.DictComp)
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
        self.tree: ast.AST = ast.fix_missing_locations(_Recording(self._places).visit(ast.parse(source)))

    def install(self) -> None:
        """Give the recorder to the script's code, which finds it among the builtins."""
        setattr(builtins, _RECORDER, self._record)

    def _record(self, number: int, value: Any) -> Any:
        seen = self._found.get(number)
        if seen is None:
            if len(self._found) >= MAX_EXPRESSIONS:
                return value
            seen = self._found[number] = []
        if len(seen) < MAX_EVALUATIONS and not (seen and seen[0] is None):
            frame = sys._getframe(1)
            seen.append(path_expression(value, frame) or self._writer.write(value))
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
        place = _place_of(node)
        is_read = isinstance(getattr(node, "ctx", None) or ast.Load(), ast.Load)
        if not isinstance(node, _RECORDED) or place is None or not is_read:
            return node
        self._places.append(place)
        arguments: List[ast.expr] = [ast.Constant(len(self._places) - 1), node]
        call = ast.Call(func=ast.Name(id=_RECORDER, ctx=ast.Load()), args=arguments, keywords=[])
        return ast.copy_location(call, node)

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        # The value of a statement that is an expression goes nowhere, so only its parts are recorded.
        if isinstance(node.value, ast.Call):
            call = node.value
            call.func = self.visit(call.func)
            call.args = [self.visit(item) for item in call.args]
            for keyword in call.keywords:
                keyword.value = self.visit(keyword.value)
            return node
        return self.generic_visit(node)


def _place_of(node: ast.AST) -> Optional[Place]:
    parts: Tuple[Any, ...] = tuple(
        getattr(node, name, None) for name in ("lineno", "col_offset", "end_lineno", "end_col_offset")
    )
    return Place(*parts) if all(isinstance(part, int) for part in parts) else None
