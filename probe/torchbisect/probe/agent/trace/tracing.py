"""What an eager run of a script does: its lines, its calls, and the values that pass through them.

``trace.Trace`` on the host reads what ``Tracer.result`` writes. It stands on ``sys.settrace``: only frames of the
script itself are followed line by line, and of all others only constructors are looked at, because they tell how an
object was made.
"""

from __future__ import annotations

import ast
import sys
import time
import types
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Set, Tuple

import torch

from .value_source import Rebuilder

CALLS_EACH = 8
CALLS_ALL = 300
VALUES_ALL = 500
DESCRIBED_EACH = 3
_RESUMED = 0x20 | 0x80 | 0x200  # generators, coroutines, asynchronous generators


class Scope(NamedTuple):
    """A function of the script: its qualified name, and its class's name if it is a method."""

    name: str
    owner: Optional[str]


class Assignment(NamedTuple):
    """A statement that binds plain names or attributes of ``self``."""

    start: int
    end: int
    targets: Tuple[str, ...]


def scopes_of(tree: ast.AST) -> Dict[Tuple[int, str], Scope]:
    """Every function in a script by its code's first line and name."""
    found: Dict[Tuple[int, str], Scope] = {}

    def walk(node: ast.AST, prefix: str, owner: Optional[str]) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
                line = min([child.lineno] + [decorator.lineno for decorator in child.decorator_list])
                found[line, child.name] = Scope(prefix + child.name, owner)
                walk(child, prefix + child.name + ".<locals>.", None)
            elif isinstance(child, ast.Lambda):
                found.setdefault((child.lineno, "<lambda>"), Scope(prefix + "<lambda>", None))
                walk(child, prefix + "<lambda>.<locals>.", None)
            elif isinstance(child, ast.ClassDef):
                walk(child, prefix + child.name + ".", child.name)
            else:
                walk(child, prefix, owner)

    walk(tree, "", None)
    return found


def assignments_of(tree: ast.AST) -> Dict[int, Assignment]:
    """Every assignment in a script, by each line that it covers."""
    found: Dict[int, Assignment] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, (ast.AugAssign, ast.AnnAssign)) and node.value is not None:
            targets = [node.target]
        else:
            continue
        names = tuple(name for target in targets for name in _bound(target))
        if names:
            statement = Assignment(node.lineno, node.end_lineno or node.lineno, names)
            for line in range(statement.start, statement.end + 1):
                found[line] = statement
    return found


def _bound(target: ast.expr) -> Iterator[str]:
    if isinstance(target, ast.Name):
        yield target.id
    elif isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self":
        yield "self." + target.attr
    elif isinstance(target, (ast.Tuple, ast.List)):
        for item in target.elts:
            yield from _bound(item)
    elif isinstance(target, ast.Starred):
        yield from _bound(target.value)


class Tracer:
    """A context in which a script is traced.

    Args:
        path: the script's file.
        source: its text.
        namespace: its globals.
    """

    def __init__(self, path: str, source: str, namespace: Dict[str, Any]) -> None:
        tree = ast.parse(source)
        self._path = path
        self._scopes = scopes_of(tree)
        self._assignments = assignments_of(tree)
        self._rebuilder = Rebuilder(namespace)
        self._lines: Set[int] = set()
        self._calls: List[Dict[str, Any]] = []
        self._counts: Dict[Any, int] = {}
        self._open: List[Tuple[Any, Optional[int], float]] = []
        self._values: Dict[Tuple[int, str, str], Tuple[int, Any]] = {}
        self._regions: List[Any] = []
        self._roots: List[Any] = []

    def __enter__(self) -> Tracer:
        sys.settrace(self._trace)
        return self

    def __exit__(self, *error: Any) -> None:
        sys.settrace(None)

    def result(self) -> Dict[str, Any]:
        """The trace as JSON."""
        sys.settrace(None)
        values: List[Dict[str, Any]] = []
        for (line, function, name), (count, value) in sorted(self._values.items()):
            text = value if count <= DESCRIBED_EACH else self._rebuilder.text(value)
            if text is not None and len(values) < VALUES_ALL:
                values.append(
                    {"line": line, "function": function, "name": name, "text": text.text, "exact": text.exact}
                )
        return {"lines": sorted(self._lines), "calls": self._calls, "values": values}

    # Regions that the script compiles -------------------------------------------------------------------------------

    def enter_region(self, target: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> None:
        """A compiled callable is about to be called."""
        code = _code_of(target)
        self._regions.append(target)
        self._roots.append(code)
        if code is None or code.co_filename != self._path:
            arguments = [("*{}".format(index), item) for index, item in enumerate(args)]
            arguments += [("**{}".format(key), item) for key, item in kwargs.items()]
            name = getattr(target, "__qualname__", None) or type(target).__name__ + ".forward"
            owner = target if isinstance(target, torch.nn.Module) else getattr(target, "__self__", None)
            owner = None if isinstance(owner, types.ModuleType) else owner
            number = self._begin(name, 0, arguments, owner, type(owner).__name__ if owner is not None else None, True)
            self._open.append((target, number, time.perf_counter()))
            self._roots[-1] = None

    def leave_region(self, error: Optional[BaseException]) -> None:
        """That call is over, by an exception if there is one."""
        target = self._regions.pop()
        self._roots.pop()
        if self._open and self._open[-1][0] is target:
            self._close(_built_in(type(error)) if error is not None else "")

    # Events ---------------------------------------------------------------------------------------------------------

    def _trace(self, frame: Any, event: str, argument: Any) -> Any:
        code = frame.f_code
        if code.co_filename != self._path:
            if code.co_name == "__init__" and event == "call":
                self._constructor(frame)
            return None
        if event == "call":
            if code.co_name == "__init__":
                self._constructor(frame)
            return self._function(frame)
        return None

    def _constructor(self, frame: Any) -> None:
        code = frame.f_code
        if not code.co_argcount:
            return
        held = frame.f_locals
        instance = held.get(code.co_varnames[0])
        if isinstance(instance, torch.nn.Module) or type(instance).__module__ == "__main__":
            names = code.co_varnames[1 : _parameters(code)]
            self._rebuilder.constructed(instance, {name: held[name] for name in names if name in held})

    def _function(self, frame: Any) -> Any:
        code = frame.f_code
        scope = self._scopes.get((code.co_firstlineno, code.co_name))
        name = scope.name if scope is not None else code.co_name
        counted = scope is not None and not code.co_flags & _RESUMED
        if counted:
            self._call(frame, scope)  # type: ignore[arg-type]
        last: List[Optional[int]] = [None]
        raised: List[str] = [""]

        def follow(frame: Any, event: str, argument: Any) -> Any:
            if event == "exception":
                raised[0] = _built_in(argument[0])
            elif event == "line":
                raised[0] = ""
                self._lines.add(frame.f_lineno)
                self._assigned(frame, name, last[0], frame.f_lineno)
                last[0] = frame.f_lineno
            elif event == "return":
                self._assigned(frame, name, last[0], None)
                if counted:
                    self._return(frame, raised[0])
            return follow

        return follow

    def _call(self, frame: Any, scope: Scope) -> None:
        code = frame.f_code
        held = frame.f_locals
        names = list(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])
        owner = None
        if scope.owner is not None and names and names[0] == "self":
            owner = held.get(names.pop(0))
        arguments = [(name, held[name]) for name in names if name in held]
        index = code.co_argcount + code.co_kwonlyargcount
        if code.co_flags & 0x04:
            arguments += [("*{}".format(at), item) for at, item in enumerate(held.get(code.co_varnames[index], ()))]
            index += 1
        if code.co_flags & 0x08:
            arguments += [("**{}".format(key), item) for key, item in held.get(code.co_varnames[index], {}).items()]
        root = bool(self._roots) and self._roots[-1] is code
        if root:
            self._roots[-1] = None
        owner_name = type(owner).__name__ if owner is not None else scope.owner
        number = self._begin(scope.name, code.co_firstlineno, arguments, owner, owner_name, root)
        self._open.append((frame, number, time.perf_counter()))

    def _begin(
        self, name: str, line: int, arguments: List[Tuple[str, Any]], owner: Any, owner_name: Optional[str], root: bool
    ) -> Optional[int]:
        # Counted apart in each thing that is compiled: a script that runs everything eagerly first, or tries many
        # models, must not use them up.
        key = (name, line, id(self._regions[-1]) if self._regions else 0)
        count = self._counts[key] = self._counts.get(key, 0) + 1
        if count > CALLS_EACH or len(self._calls) >= CALLS_ALL:
            return None
        described = []
        for parameter, value in arguments:
            text = self._rebuilder.text(value)
            described.append(
                {"name": parameter, "text": text.text if text else None, "exact": bool(text and text.exact)}
            )
        made = self._rebuilder.text(owner) if owner is not None else None
        number = len(self._calls)
        self._calls.append(
            {
                "number": number,
                "parent": next((held for _, held, _ in reversed(self._open) if held is not None), None),
                "function": name,
                "line": line,
                "arguments": described,
                "owner": owner_name,
                "owner_text": made.text if made else None,
                "compiled": bool(self._regions),
                "root": root,
                "seconds": 0.0,
                "raised": "",
            }
        )
        return number

    def _return(self, frame: Any, raised: str) -> None:
        while self._open:
            found = self._open[-1][0] is frame
            self._close(raised)
            if found:
                return

    def _close(self, raised: str) -> None:
        _, number, began = self._open.pop()
        if number is not None:
            self._calls[number].update(seconds=round(time.perf_counter() - began, 6), raised=raised)

    def _assigned(self, frame: Any, scope: str, last: Optional[int], now: Optional[int]) -> None:
        """A statement is done when the next line is not one of its own."""
        statement = self._assignments.get(last) if last is not None else None
        if statement is None or (now is not None and now != last and statement.start <= now <= statement.end):
            return
        held = frame.f_locals
        for target in statement.targets:
            if target.startswith("self."):
                value = getattr(held.get("self"), "__dict__", {}).get(target[5:], _ABSENT)
            else:
                value = held.get(target, _ABSENT)
            if value is _ABSENT:
                continue
            key = (statement.end, scope, target)
            count = self._values.get(key, (0, None))[0] + 1
            if len(self._values) <= VALUES_ALL or key in self._values:
                self._values[key] = (count, self._rebuilder.text(value) if count <= DESCRIBED_EACH else value)


_ABSENT = object()


def _built_in(kind: type) -> str:
    """The name of an exception's class, or of the nearest base of it that every script knows."""
    return next((base.__name__ for base in kind.__mro__ if base.__module__ == "builtins"), "Exception")


def _parameters(code: Any) -> int:
    count = int(code.co_argcount + code.co_kwonlyargcount)
    return count + bool(code.co_flags & 0x04) + bool(code.co_flags & 0x08)


def _code_of(target: Any) -> Any:
    if isinstance(target, torch.nn.Module):
        target = target.forward
    target = getattr(target, "func", target)
    return getattr(getattr(target, "__func__", target), "__code__", None)
