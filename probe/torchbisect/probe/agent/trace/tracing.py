"""Trace an eager run with ``sys.settrace``: its calls, and the values that pass through them.

The host reads the result of ``Tracer.result`` as a ``trace.Trace``. The tracer uses ``sys.settrace`` and follows only
the frames of the script line by line. Of other frames it reads only the arguments of constructors, because they show
how an object was created.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import sys
import time
import types
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

import torch

from .attribute_reads import AttributeReads, attributes_of
from .differentiable import differentiable_paths
from .expression_values import ExpressionValues
from .loop_iterations import LoopIterations
from .shared_storage import with_shared_storage
from .value_source import ExpressionWriter

MAX_CALLS_PER_FUNCTION = 8
MAX_ROOT_CALLS = 100
"""The most calls of one compiled function: a mismatch is named by the number of such a call, often a late one."""
MAX_CALLS = 300
"""The most calls of all compiled functions, and of all others."""
MAX_VALUES = 500
MAX_EXPRESSIONS_PER_NAME = 3
_GENERATOR_FLAGS = 0x20 | 0x80 | 0x200  # CO_GENERATOR, CO_COROUTINE, CO_ASYNC_GENERATOR
_VARARGS, _VARKEYWORDS = 0x04, 0x08  # CO_VARARGS, CO_VARKEYWORDS


# What methods of the script's own classes raise would end the traced run.
_ignored_errors = contextlib.suppress(Exception)


class TracedFunction(NamedTuple):
    """A function of the script: its qualified name, and the name of its class if it is a method."""

    name: str
    owner: Optional[str]


class Owner(NamedTuple):
    """The object of a method, or ``None``, the name of its class, and the names that the method reads or sets."""

    value: Any
    name: Optional[str]
    names: Tuple[str, ...]


class Assignment(NamedTuple):
    """A statement that binds plain names or attributes of ``self``, with its first and last line."""

    start: int
    end: int
    targets: Tuple[str, ...]


class Tracer:
    """A context that traces the script with this path, source text and namespace of globals.

    ``private_folders`` exist during this run only, so no value with the path of one is recorded.
    """

    def __init__(self, path: str, source: str, namespace: Dict[str, Any], private_folders: Sequence[str] = ()) -> None:
        tree = ast.parse(source)
        self._path = path
        self._scopes = _scopes_of(tree)
        self._assignments = _assignments_of(tree)
        self._writer = ExpressionWriter(namespace, private_folders)
        self._reads = AttributeReads(tree, self._writer)
        self._loops = LoopIterations(tree, self._writer)
        self._expressions = ExpressionValues(source, self._writer)
        self._calls: List[Dict[str, Any]] = []
        self._call_counts: Dict[Any, int] = {}
        self._open_calls: List[Tuple[Any, Optional[int], float]] = []
        self._values: Dict[Tuple[int, str, str], Tuple[int, Any]] = {}
        self._regions: List[Any] = []
        self._region_count = 0
        self._root_codes: List[Any] = []

    @property
    def tree(self) -> ast.AST:
        """The script as it is to be run: each value that it computes is recorded on its way."""
        return self._expressions.tree

    def __enter__(self) -> Tracer:
        self._expressions.install()
        sys.settrace(self._on_event)
        return self

    def __exit__(self, *error: Any) -> None:
        sys.settrace(None)

    def result(self) -> Dict[str, Any]:
        """Stop tracing and return the trace as JSON."""
        sys.settrace(None)
        values: List[Dict[str, Any]] = []
        for (line, function, name), (count, value) in sorted(self._values.items()):
            text = value if count <= MAX_EXPRESSIONS_PER_NAME else self._writer.write(value)
            if text is not None and len(values) < MAX_VALUES:
                place = {"line": line, "function": function, "name": name}
                values.append({**place, "text": text.text, "exact": text.exact})
        reads = self._reads.result()
        computed, loops = self._expressions.result(), self._loops.result()
        found = {"calls": self._calls, "values": values, "reads": reads}
        return {**found, "expressions": computed, "iterations": loops}

    def enter_region(self, target: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> None:
        """Note that a compiled callable is about to be called."""
        code = _code_object_of(target)
        self._regions.append(target)
        self._region_count += 1
        self._root_codes.append(code)
        if code is None or code.co_filename != self._path:
            arguments = [("*{}".format(index), item) for index, item in enumerate(args)]
            arguments += [("**{}".format(key), item) for key, item in kwargs.items()]
            name = getattr(target, "__qualname__", None) or type(target).__name__ + ".forward"
            owner = target if isinstance(target, torch.nn.Module) else getattr(target, "__self__", None)
            owner = None if isinstance(owner, types.ModuleType) else owner
            owner_name = type(owner).__name__ if owner is not None else None
            number = self._begin_call(name, 0, arguments, Owner(owner, owner_name, ()), True)
            self._open_calls.append((target, number, time.perf_counter()))
            self._root_codes[-1] = None

    def leave_region(self, error: Optional[BaseException]) -> None:
        """Note that the call of the compiled callable has ended, by an exception if there is one."""
        target = self._regions.pop()
        self._root_codes.pop()
        if self._open_calls and self._open_calls[-1][0] is target:
            self._end_call(_builtin_exception_name(type(error)) if error is not None else "")

    def _on_event(self, frame: Any, event: str, argument: Any) -> Any:
        code = frame.f_code
        if event != "call":
            return None
        if code.co_name == "__init__":
            with _ignored_errors:
                self._note_constructor(frame)
        return self._follow_function(frame) if code.co_filename == self._path else None

    def _note_constructor(self, frame: Any) -> None:
        code = frame.f_code
        if not code.co_argcount:
            return
        held = frame.f_locals
        instance = held.get(code.co_varnames[0])
        if isinstance(instance, torch.nn.Module) or type(instance).__module__ == "__main__":
            names = code.co_varnames[1 : _parameter_count(code)]
            self._writer.note_constructor(instance, {name: held[name] for name in names if name in held})

    def _follow_function(self, frame: Any) -> Any:
        code = frame.f_code
        scope = self._scopes.get((code.co_firstlineno, code.co_name))
        name = scope.name if scope is not None else code.co_name
        is_recorded = scope is not None and not code.co_flags & _GENERATOR_FLAGS
        if is_recorded:
            with _ignored_errors:
                self._record_call(frame, scope)  # type: ignore[arg-type]
        last: List[Optional[int]] = [None]
        raised: List[str] = [""]

        def follow(frame: Any, event: str, argument: Any) -> Any:
            with _ignored_errors:
                if event == "exception":
                    raised[0] = _builtin_exception_name(argument[0])
                elif event == "line":
                    raised[0] = ""
                    self._record_assignment(frame, name, last[0], frame.f_lineno)
                    last[0] = frame.f_lineno
                    self._reads.record(frame, name)
                    self._loops.record(frame, name)
            if event == "return":
                with _ignored_errors:
                    self._record_assignment(frame, name, last[0], None)
                    self._note_made(frame, argument)
                if is_recorded:
                    self._end_calls_through(frame, raised[0], argument)
            return follow

        return follow

    def _note_made(self, frame: Any, value: Any) -> None:
        """Note that a function of the script returned a function or class that it defines."""
        local = isinstance(value, (type, types.FunctionType)) and "<locals>" in value.__qualname__
        function = frame.f_globals.get(frame.f_code.co_name) if local else None
        if _code_object_of(inspect.unwrap(function) if callable(function) else None) is not frame.f_code:
            return
        number = next((number for held, number, _ in reversed(self._open_calls) if held is frame), None)
        if number is not None:
            count = frame.f_code.co_argcount
            given = [
                _passed(item["name"] if place >= count else "*", item["text"])
                for place, item in enumerate(self._calls[number]["arguments"])
            ]
            self._writer.note_made(value, function, given)

    def _record_call(self, frame: Any, scope: TracedFunction) -> None:
        code = frame.f_code
        held = frame.f_locals
        names = list(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])
        owner = None
        if scope.owner is not None and names and names[0] == "self":
            owner = held.get(names.pop(0))
        arguments = [(name, held[name]) for name in names if name in held]
        index = code.co_argcount + code.co_kwonlyargcount
        if code.co_flags & _VARARGS:
            arguments += [("*{}".format(at), item) for at, item in enumerate(held.get(code.co_varnames[index], ()))]
            index += 1
        if code.co_flags & _VARKEYWORDS:
            arguments += [("**{}".format(key), item) for key, item in held.get(code.co_varnames[index], {}).items()]
        root = bool(self._root_codes) and self._root_codes[-1] is code
        if root:
            self._root_codes[-1] = None
        owner_name = type(owner).__name__ if owner is not None else scope.owner
        found = Owner(owner, owner_name, _names_in(code) if owner is not None else ())
        number = self._begin_call(scope.name, code.co_firstlineno, arguments, found, root)
        self._open_calls.append((frame, number, time.perf_counter()))

    def _begin_call(
        self, name: str, line: int, arguments: List[Tuple[str, Any]], owner: Owner, root: bool
    ) -> Optional[int]:
        # Calls are counted separately for each compiled callable. Otherwise a script that runs everything eagerly
        # first, or compiles many models, would reach the maximum too early.
        key = (name, line, id(self._regions[-1]) if self._regions else 0)
        count = self._call_counts[key] = self._call_counts.get(key, 0) + 1
        if count > (MAX_ROOT_CALLS if root else MAX_CALLS_PER_FUNCTION):
            return None
        if sum(call["root"] is root for call in self._calls) >= MAX_CALLS:
            return None
        owner_expression = self._writer.write(owner.value) if owner.value is not None else None
        number = len(self._calls)
        self._calls.append(
            {
                "number": number,
                "parent": next((held for _, held, _ in reversed(self._open_calls) if held is not None), None),
                "function": name,
                "line": line,
                "arguments": self._written(arguments, by_value=root),
                "owner": owner.name,
                "owner_text": owner_expression.text if owner_expression else None,
                "compiled": bool(self._regions),
                "root": root,
                "root_number": self._region_count - 1 if root else None,
                "seconds": 0.0,
                "raised": "",
                "attributes": self._written(attributes_of(owner.value, owner.names), by_value=root),
            }
        )
        return number

    def _written(self, named: Sequence[Tuple[str, Any]], *, by_value: bool) -> List[Dict[str, Any]]:
        """Return named values as ``trace.Argument`` as JSON."""
        values = [value for _, value in named]
        found: List[Dict[str, Any]] = []
        for (name, value), text in zip(named, with_shared_storage(values, [self._writer.write(one) for one in values])):
            found.append({"name": name, "text": text.text if text else None, "exact": bool(text and text.exact)})
            if by_value and text is not None and "torch.rand" in text.text:
                exact = self._writer.write_by_value(value)
                found[-1]["by_value"] = exact.text if exact is not None and exact.text != text.text else None
        return found

    def _end_calls_through(self, frame: Any, raised: str, result: Any) -> None:
        if not any(held is frame for held, _, _ in self._open_calls):
            return  # it could not be recorded
        while self._open_calls:
            found = self._open_calls[-1][0] is frame
            number = self._open_calls[-1][1]
            self._end_call(raised)
            if found:
                if number is not None:
                    with _ignored_errors:
                        self._calls[number]["differentiable"] = differentiable_paths(result)
                return

    def _end_call(self, raised: str) -> None:
        _, number, began = self._open_calls.pop()
        if number is not None:
            self._calls[number].update(seconds=round(time.perf_counter() - began, 6), raised=raised)

    def _record_assignment(self, frame: Any, scope: str, last: Optional[int], now: Optional[int]) -> None:
        """Record the values that a statement assigned, once the next line is not part of it."""
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
            if len(self._values) <= MAX_VALUES or key in self._values:
                self._values[key] = (count, self._writer.write(value) if count <= MAX_EXPRESSIONS_PER_NAME else value)


_ABSENT = object()


def _builtin_exception_name(kind: type) -> str:
    """Return the name of an exception's class or of its nearest built-in base class."""
    return next((base.__name__ for base in kind.__mro__ if base.__module__ == "builtins"), "Exception")


def _passed(name: str, text: Optional[str]) -> Optional[str]:
    """Return a recorded argument as a call passes it: by its name unless that begins with one star."""
    if text is None or (name.startswith("*") and not name.startswith("**")):
        return text
    return "{}={}".format(name.lstrip("*"), text)


def _parameter_count(code: Any) -> int:
    count = int(code.co_argcount + code.co_kwonlyargcount)
    return count + bool(code.co_flags & _VARARGS) + bool(code.co_flags & _VARKEYWORDS)


def _names_in(code: Any) -> Tuple[str, ...]:
    """Return the names of globals and attributes in a code object and in those inside it."""
    inner = [item for item in code.co_consts if isinstance(item, types.CodeType)]
    return tuple(dict.fromkeys([*code.co_names, *(name for item in inner for name in _names_in(item))]))


def _code_object_of(target: Any) -> Any:
    if isinstance(target, torch.nn.Module):
        target = target.forward
    target = getattr(target, "func", target)
    return getattr(getattr(target, "__func__", target), "__code__", None)


def _scopes_of(tree: ast.AST) -> Dict[Tuple[int, str], TracedFunction]:
    """Return every function in a script, by the first line and the name of its code object."""
    found: Dict[Tuple[int, str], TracedFunction] = {}

    def walk(node: ast.AST, prefix: str, owner: Optional[str]) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
                line = min([child.lineno] + [decorator.lineno for decorator in child.decorator_list])
                found[line, child.name] = TracedFunction(prefix + child.name, owner)
                walk(child, prefix + child.name + ".<locals>.", None)
            elif isinstance(child, ast.Lambda):
                found.setdefault((child.lineno, "<lambda>"), TracedFunction(prefix + "<lambda>", None))
                walk(child, prefix + "<lambda>.<locals>.", None)
            elif isinstance(child, ast.ClassDef):
                walk(child, prefix + child.name + ".", child.name)
            else:
                walk(child, prefix, owner)

    walk(tree, "", None)
    return found


def _assignments_of(tree: ast.AST) -> Dict[int, Assignment]:
    """Return every assignment in a script, by each line that it covers."""
    found: Dict[int, Assignment] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, (ast.AugAssign, ast.AnnAssign)) and node.value is not None:
            targets = [node.target]
        else:
            continue
        names = tuple(name for target in targets for name in _targets(target))
        if names:
            statement = Assignment(node.lineno, node.end_lineno or node.lineno, names)
            for line in range(statement.start, statement.end + 1):
                found[line] = statement
    return found


def _targets(target: ast.expr) -> Iterator[str]:
    if isinstance(target, ast.Name):
        yield target.id
    elif isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self":
        yield "self." + target.attr
    elif isinstance(target, (ast.Tuple, ast.List)):
        for item in target.elts:
            yield from _targets(item)
    elif isinstance(target, ast.Starred):
        yield from _targets(target.value)
