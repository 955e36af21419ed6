"""What crosses the compile boundary, call by call, and what a script leaves behind.

One recorder serves one run. It hears of three things: a call of a compiled callable, a run of the autograd engine, and
the script's end. Each becomes one entry on the tape. It notes the same things in an eager run, where "compiled"
callables are called as they are, so that the two tapes can be laid side by side.
"""

from __future__ import annotations

import collections
import dis
import inspect
import os
import sys
import threading
import time
import types
import weakref
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Set, Tuple

import torch

from ..run import dynamo_skip
from ..run.deterministic_rng import drawn
from . import exceptions, raw_tensor
from .snapshot import Snapshot, class_name
from .tape import Tape

MOST_CALLS = 2000
_clock = time.perf_counter
_FILLED = (list, dict, set, collections.deque)
_SKIPPED_GLOBALS = ("In", "Out", "exit", "quit")


class Opened(NamedTuple):
    """A recorded call that has begun."""

    entry: Dict[str, Any]
    inputs: List[Tuple[str, Any]]
    before: Dict[int, int]
    drawn: int
    began: float


class Recorder:
    """Writes what happens in one run on its tape.

    Args:
        tape: where entries go.
        folders: where the script and its neighbours lie; classes from there are looked into.
    """

    def __init__(self, tape: Tape, folders: List[str]) -> None:
        self.tape = tape
        self.compiled: Set[int] = set()
        self.quiet = False
        self.seconds: List[float] = []
        self.tracer: Any = None
        self._folders = tuple(os.path.realpath(folder) + os.sep for folder in folders)
        self._process = os.getpid()
        self._thread = threading.get_ident()
        self._calls = 0
        self._inside: Optional[int] = None
        self._leaves: Dict[int, Tuple[str, Any]] = {}
        self._hooks: List[Any] = []
        self._hook_names: Set[str] = set()
        self._hook_cells: List[Any] = []
        self._mine: Dict[type, bool] = {}
        self._open = dynamo_skip.apart(self._opened)
        self._close = dynamo_skip.apart(self._closed)
        self.backward = dynamo_skip.apart(self._ran_backward)
        self.hook = dynamo_skip.apart(self._registered)

    # What belongs to the script -------------------------------------------------------------------------------------

    def mine(self, kind: type) -> bool:
        """Whether a class is the script's own."""
        if kind not in self._mine:
            module = sys.modules.get(kind.__module__)
            file = os.path.realpath(getattr(module, "__file__", None) or "/")
            self._mine[kind] = kind.__module__ == "__main__" or file.startswith(self._folders)
        return self._mine[kind]

    def snapshot(self) -> Snapshot:
        """A snapshot that knows the script's classes and how much room is left."""
        return Snapshot(self.mine, crowded=self.tape.used > self.tape.size // 2)

    def listening(self) -> bool:
        """Whether what happens now belongs on the tape: this process, this thread, and not inside a call."""
        return (
            not self.quiet
            and os.getpid() == self._process
            and threading.get_ident() == self._thread
            and self._calls < MOST_CALLS
        )

    # Calls ----------------------------------------------------------------------------------------------------------

    @dynamo_skip.frame
    def cross(self, site: int, label: str, target: Any, call: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Call ``call`` and record it as a call of ``target``, unless it happens inside another recorded call."""
        opened = self._open(site, label, target, args, kwargs)
        if opened is None:
            return call(*args, **kwargs)
        try:
            result = call(*args, **kwargs)
        except BaseException as error:
            self._close(opened, error)
            raise
        self._close(opened, None, result)
        return result

    def _opened(self, site: int, label: str, target: Any, args: Any, kwargs: Any) -> Optional[Opened]:
        self.compiled.add(site)
        if not self.listening() or self._inside is not None or any(map(raw_tensor.is_traced, args)):
            return None
        number = self._inside = self._calls
        self._calls += 1
        inputs = list(_inputs(target, args, kwargs))
        before = _versions(inputs)
        for name, value in inputs:
            self._note_leaves(name, value)
        self.tape.append({"e": "begin", "n": number, "label": label})
        if self.tracer is not None:
            self.tracer.enter_region(target, args, kwargs)
        return Opened({"e": "call", "n": number, "label": label}, inputs, before, drawn(), _clock())

    def _closed(self, opened: Opened, error: Optional[BaseException], *result: Any) -> None:
        self.seconds.append(round(_clock() - opened.began, 6))
        self._inside = None
        if self.tracer is not None:
            self.tracer.leave_region(error)
        if error is not None:
            opened.entry["raised"] = exceptions.brief(error)
        for item in result:
            self._note_leaves("call {} output".format(len(self.seconds) - 1), item, inner=True)
        opened.entry["drew"] = drawn() != opened.drawn
        self._finish(opened.entry, opened.inputs, opened.before, *result)

    def _finish(
        self, entry: Dict[str, Any], inputs: List[Tuple[str, Any]], before: Dict[int, int], *result: Any
    ) -> None:
        if not self.listening():
            return
        snapshot = self.snapshot()
        entry["inputs"] = [[name, snapshot.node(value)] for name, value in inputs]
        entry["mutated"] = sorted(
            {
                index
                for index, tensor in enumerate(snapshot.described())
                if id(tensor) in before and _version(tensor) != before[id(tensor)]
            }
        )
        if result:
            entry["output"] = snapshot.node(result[0])
        entry["hooked"] = [name for name, value in inputs if self._is_hooked(name, value)]
        self._write(entry, snapshot)

    def _write(self, entry: Dict[str, Any], snapshot: Snapshot) -> None:
        entry["tensors"] = snapshot.tensors
        self.tape.append(entry, snapshot.chunks)

    # Gradients ------------------------------------------------------------------------------------------------------

    def _note_leaves(self, name: str, value: Any, inner: bool = False) -> None:
        """Remember tensors that autograd may put a gradient on: leaves, and with ``inner`` also what may retain one."""
        for path, tensor in _tensors(name, value):
            try:
                held = self._leaves.get(id(tensor))
                known = held is not None and held[1]() is tensor
                if tensor.requires_grad and (inner or tensor.is_leaf) and not known:
                    self._leaves[id(tensor)] = (path, weakref.ref(tensor))
            except (RuntimeError, TypeError):
                continue

    def _ran_backward(self, results: Any) -> None:
        """The autograd engine has run: note what it returned, and the gradients of the leaves seen so far."""
        if not self.listening():
            return
        results = results if isinstance(results, (tuple, list)) else ()
        if any(map(raw_tensor.is_traced, results)):
            return
        self._calls += 1
        snapshot = self.snapshot()
        entry: Dict[str, Any] = {"e": "backward", "inside": self._inside}
        entry["results"] = [snapshot.node(item) for item in results]
        leaves = []
        for path, held in list(self._leaves.values()):
            tensor = held()
            if tensor is not None:
                with raw_tensor.looking():
                    grad = raw_tensor.gradient(raw_tensor.unwrapped(tensor))
                leaves.append([path + ".grad", snapshot.node(grad)])
        entry["leaves"] = leaves
        self._write(entry, snapshot)

    # Hooks ----------------------------------------------------------------------------------------------------------

    def _registered(self, function: Any) -> None:
        """The script registered a hook: what that function writes to is put down as the work of hooks."""
        for _, value in _reached(function):
            if isinstance(value, _FILLED) or (hasattr(value, "__dict__") and self.mine(type(value))):
                self._hooks.append(value)
        globals_, cells = _rebound(function)
        self._hook_names.update("global " + name for name in globals_)
        self._hook_cells += cells

    def _is_hooked(self, name: str, value: Any) -> bool:
        return name in self._hook_names or any(value is held for held in self._hooks)

    # The end --------------------------------------------------------------------------------------------------------

    def finish(self, ending: Dict[str, Any], namespace: Dict[str, Any]) -> None:
        """The script is done: note what its globals hold."""
        if os.getpid() != self._process:
            return
        snapshot = self.snapshot()
        held = []
        hooked = []
        for name, value in list(namespace.items()):
            cells = {"{} closure {}".format(name, cell) for cell in self._hook_cells_of(value)}
            for path, item in self._state(name, value):
                held.append([path, snapshot.node(item)])
                if self._is_hooked("global " + path, item) or path in cells:
                    hooked.append(path)
        self._write({"e": "end", "ending": ending, "globals": held, "hooked": hooked}, snapshot)

    def _hook_cells_of(self, function: Any) -> Iterator[str]:
        """The names of a function's cells that a hook rebinds."""
        if self._hook_cells and isinstance(function, (types.FunctionType, types.MethodType)):
            for name, cell in _closure(inspect.unwrap(function)):
                if any(cell is held for held in self._hook_cells):
                    yield name

    def _state(self, name: str, value: Any) -> Iterator[Tuple[str, Any]]:
        """What a global holds that a run can change: the value, a function's cells, a class's plain attributes."""
        if name.startswith("__") or name in _SKIPPED_GLOBALS or isinstance(value, types.ModuleType):
            return
        if isinstance(value, type):
            if self.mine(value):
                for attribute, item in list(vars(value).items()):
                    if (
                        isinstance(item, (int, float, str, list, dict, set, tuple, torch.Tensor))
                        and attribute[:1] != "_"
                    ):
                        yield "{}.{}".format(name, attribute), item
            return
        if isinstance(value, (types.FunctionType, types.MethodType)):
            inner = inspect.unwrap(value) if hasattr(value, "__wrapped__") else value
            for cell, item in _cells(inner):
                if not callable(item) or isinstance(item, torch.nn.Module):
                    yield "{} closure {}".format(name, cell), item
            return
        yield name, value


def _closure(function: Any) -> Iterator[Tuple[str, Any]]:
    """The cells of a function, by name."""
    function = getattr(function, "__func__", function)
    code = getattr(function, "__code__", None)
    if isinstance(code, types.CodeType):
        yield from zip(code.co_freevars, function.__closure__ or ())


def _rebound(function: Any) -> Tuple[Set[str], List[Any]]:
    """What a function assigns to outside itself: globals by their name, and cells."""
    inner = getattr(function, "__func__", function)
    code = getattr(inner, "__code__", None)
    if not isinstance(code, types.CodeType):
        return set(), []
    stored = [(item.opname, item.argval) for item in dis.get_instructions(code)]
    names = {name for operation, name in stored if operation == "STORE_GLOBAL"}
    outer = {name for operation, name in stored if operation == "STORE_DEREF"}
    return names, [cell for name, cell in _closure(inner) if name in outer]


def _cells(function: Any) -> Iterator[Tuple[str, Any]]:
    for name, cell in _closure(function):
        try:
            yield name, cell.cell_contents
        except ValueError:
            continue  # the cell is still empty


def _names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)


def _reached(function: Any, depth: int = 0) -> Iterator[Tuple[str, Any]]:
    """What a function can reach without being given it: its cells, the globals it names, its ``self``."""
    owner = getattr(function, "__self__", None)
    if owner is not None and not isinstance(owner, types.ModuleType):
        yield "self", owner
    inner = getattr(function, "__func__", function)
    for name, value in _cells(inner):
        functions = _functions(value)
        if functions is None:
            yield "closure " + name, value
        elif depth < 2:
            for further in functions:
                yield from _reached(further, depth + 1)
    code, space = getattr(inner, "__code__", None), getattr(inner, "__globals__", None)
    if isinstance(code, types.CodeType) and isinstance(space, dict):
        for name in dict.fromkeys(_names(code)):
            value = space.get(name)
            functions = _functions(value)
            if functions is not None:
                for further in functions if depth < 2 else ():
                    if further.__globals__ is space:
                        yield from _reached(further, depth + 1)
            elif value is not None and not isinstance(value, (types.ModuleType, type)) and not _is_library(value):
                yield "global " + name, value


def _functions(value: Any) -> Optional[List[types.FunctionType]]:
    """A function itself, of a class of the script's its methods; ``None`` for what is neither."""
    if isinstance(value, types.FunctionType):
        return [value]
    if isinstance(value, type) and value.__module__ == "__main__":
        return [item for item in vars(value).values() if isinstance(item, types.FunctionType)]
    return None


def _is_library(value: Any) -> bool:
    return callable(value) and not isinstance(value, torch.nn.Module) and class_name(value).startswith("torch")


def _inputs(target: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Iterator[Tuple[str, Any]]:
    """Everything a call is given, by name: arguments, ``self``, cells and globals that it can reach."""
    is_module = isinstance(target, torch.nn.Module)
    function = target.forward if is_module else target
    try:
        bound = inspect.signature(function).bind(*args, **kwargs)
        for name, value in bound.arguments.items():
            kind = bound.signature.parameters[name].kind
            if kind is inspect.Parameter.VAR_POSITIONAL:
                for index, item in enumerate(value):
                    yield "argument *{}".format(index), item
            elif kind is inspect.Parameter.VAR_KEYWORD:
                for key, item in value.items():
                    yield "argument {}".format(key), item
            else:
                yield ("self" if name == "self" else "argument {}".format(name)), value
    except (TypeError, ValueError):
        for index, item in enumerate(args):
            yield "argument {}".format(index), item
        for key, item in kwargs.items():
            yield "argument {}".format(key), item
    seen = set()
    if is_module:
        yield "self", target
        seen.add("self")
    for name, value in _reached(function):
        if name not in seen:
            seen.add(name)
            yield name, value


def _tensors(name: str, value: Any, depth: int = 0) -> Iterator[Tuple[str, torch.Tensor]]:
    if isinstance(value, torch.Tensor):
        yield name, value
    elif isinstance(value, torch.nn.Module):
        for part, item in getattr(value, "_orig_mod", value).named_parameters():
            yield "{}.{}".format(name, part), item
    elif depth < 4 and isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            yield from _tensors("{}[{}]".format(name, index), item, depth + 1)
    elif depth < 4 and isinstance(value, dict):
        for key, item in value.items():
            yield from _tensors("{}[{!r}]".format(name, key), item, depth + 1)
    elif depth < 4 and not isinstance(value, type) and type(value).__module__ == "__main__":
        for key, item in vars(value).items() if hasattr(value, "__dict__") else ():
            yield from _tensors("{}.{}".format(name, key), item, depth + 1)


def _version(tensor: torch.Tensor) -> int:
    try:
        return int(tensor._version)
    except RuntimeError:
        return -1  # made in inference mode


def _versions(inputs: List[Tuple[str, Any]]) -> Dict[int, int]:
    found: Dict[int, int] = {}
    with raw_tensor.looking():
        for name, value in inputs:
            for _, tensor in _tensors(name, value):
                found[id(tensor)] = _version(tensor)
            if isinstance(value, torch.nn.Module):
                for buffer in value.buffers():
                    found[id(buffer)] = _version(buffer)
    return found
