"""Find the values that a function can reach, the tensors in them, and the state that a hook can write to."""

from __future__ import annotations

import collections
import dis
import functools
import inspect
import types
from typing import Any, Callable, Dict, Iterator, List, Optional, Set, Tuple

import torch

from . import raw_tensor
from .snapshot import class_name

IsOwn = Callable[[type], bool]
_CONTAINERS = (list, dict, set, collections.deque)
_STATE = (*_CONTAINERS, bool, int, float, str, tuple, type(None), torch.Tensor)
_MOST_ITEMS, _MOST_ELEMENTS = 64, 4096


def is_in_main(kind: type) -> bool:
    """Return True for a class of the script."""
    return kind.__module__ == "__main__"


def call_inputs(
    target: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any], is_own: IsOwn = is_in_main
) -> Iterator[Tuple[str, Any]]:
    """Yield everything that a call can read, by name: arguments, ``self``, cells, globals, and what classes hold."""
    while isinstance(target, functools.partial):
        target, args, kwargs = target.func, (*target.args, *args), {**target.keywords, **kwargs}
    is_module = isinstance(target, torch.nn.Module)
    function = target.forward if is_module else target
    method = inspect.getattr_static(function, "__call__", None)
    if isinstance(method, types.FunctionType):  # an object of a class that defines it
        function = types.MethodType(method, function)
    arguments = list(_named_arguments(function, args, kwargs))
    yield from arguments
    found = {"self": target} if is_module else {}
    for name, value in reachable_values(function, 0, is_own):
        found.setdefault(name, value)
    for value in [*found.values(), *(value for _, value in arguments)]:
        parts = value.modules() if isinstance(value, torch.nn.Module) else (value,)
        for kind in dict.fromkeys(map(type, parts)):
            found.update(_globals_of_class(kind, is_own))
            for name, state in _state_of_methods(kind, is_own):
                found.setdefault(name, state)
    yield from found.items()


def _state_of_methods(kind: type, is_own: IsOwn) -> Iterator[Tuple[str, Any]]:
    """Yield the small containers among the globals that the methods of a script's class can change in place.

    A call need not use them at all, so a data set among them must not be recorded with each call.
    """
    for function in _functions_of(kind, is_own) or ():
        for name, value in reachable_values(function, 1, is_own):
            if name.startswith("global ") and isinstance(value, _CONTAINERS) and len(value) <= _MOST_ITEMS:
                items = list(value.values() if isinstance(value, dict) else value)
                if sum(item.numel() for item in items if isinstance(item, torch.Tensor)) <= _MOST_ELEMENTS:
                    yield name, value


def _globals_of_class(kind: type, is_own: IsOwn) -> Iterator[Tuple[str, Any]]:
    """Yield the state of a class at the top of its module, and of its base classes."""
    for base in kind.__mro__:
        if is_own(base) and "." not in base.__qualname__:
            for name, value in state_of_class(base):
                yield "global {}.{}".format(base.__name__, name), value


def state_of_class(kind: type) -> Iterator[Tuple[str, Any]]:
    """Yield the attributes of a class itself that are numbers, text, tensors or containers."""
    for name, value in list(vars(kind).items()):
        if isinstance(value, _STATE) and not name.startswith("_"):
            yield name, value


def _named_arguments(function: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Iterator[Tuple[str, Any]]:
    """Yield the arguments by their parameters, or by position where the signature cannot be read."""
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


def reachable_values(function: Any, depth: int = 0, is_own: IsOwn = is_in_main) -> Iterator[Tuple[str, Any]]:
    """Yield the values that a function reads without being given them: its ``self``, its cells, the globals it names.

    The functions among these, and the classes that ``is_own``, are followed two levels deep.
    """
    owner = getattr(function, "__self__", None)
    if owner is not None and not isinstance(owner, types.ModuleType):
        yield "self", owner
    inner = getattr(function, "__func__", function)
    for name, value in cell_values(inner):
        functions = _functions_of(value, is_own)
        if functions is None:
            yield "closure " + name, value
        elif depth < 2:
            for further in functions:
                yield from reachable_values(further, depth + 1, is_own)
    code, namespace = getattr(inner, "__code__", None), getattr(inner, "__globals__", None)
    if isinstance(code, types.CodeType) and isinstance(namespace, dict):
        for name in dict.fromkeys(name for part in _codes_in(code) for name in part.co_names):
            value = namespace.get(name)
            functions = _functions_of(value, is_own)
            if functions is not None:
                for further in functions if depth < 2 else ():
                    if further.__globals__ is namespace:
                        yield from reachable_values(further, depth + 1, is_own)
                if isinstance(value, type):
                    yield from _globals_of_class(value, is_own)
            elif not isinstance(value, (types.ModuleType, type, type(None))) and not _is_torch_callable(value):
                yield "global " + name, value


def closure_cells(function: Any) -> Iterator[Tuple[str, Any]]:
    """Yield the closure cells of a function, by name."""
    function = getattr(function, "__func__", function)
    code = getattr(function, "__code__", None)
    if isinstance(code, types.CodeType):
        yield from zip(code.co_freevars, function.__closure__ or ())


def cell_values(function: Any) -> Iterator[Tuple[str, Any]]:
    """Yield the values in the closure cells of a function, by name."""
    for name, cell in closure_cells(function):
        try:
            yield name, cell.cell_contents
        except ValueError:
            continue  # the cell is still empty


def _codes_in(code: types.CodeType) -> Iterator[types.CodeType]:
    """Yield a code object and those of the functions inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes_in(constant)


def _functions_of(value: Any, is_own: IsOwn) -> Optional[List[types.FunctionType]]:
    """Return a function itself, or the methods of a script's class; ``None`` for any other value."""
    if isinstance(value, types.FunctionType):
        return [value]
    if isinstance(value, type) and is_own(value):
        return [item for item in vars(value).values() if isinstance(item, types.FunctionType)]
    return None


def _is_torch_callable(value: Any) -> bool:
    return callable(value) and not isinstance(value, torch.nn.Module) and class_name(value).startswith("torch")


def tensors_in_value(
    name: str, value: Any, depth: int = 0, is_own: IsOwn = is_in_main
) -> Iterator[Tuple[str, torch.Tensor]]:
    """Yield the tensors in a value with their paths: in containers, modules and objects of the script's classes."""
    if isinstance(value, torch.Tensor):
        yield name, value
    elif isinstance(value, torch.nn.Module):
        for part, item in getattr(value, "_orig_mod", value).named_parameters():
            yield "{}.{}".format(name, part), item
    elif depth < 4 and isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            yield from tensors_in_value("{}[{}]".format(name, index), item, depth + 1, is_own)
    elif depth < 4 and isinstance(value, dict):
        for key, item in value.items():
            yield from tensors_in_value("{}[{!r}]".format(name, key), item, depth + 1, is_own)
    elif depth < 4 and not isinstance(value, type) and is_own(type(value)):
        for key, item in vars(value).items() if hasattr(value, "__dict__") else ():
            yield from tensors_in_value("{}.{}".format(name, key), item, depth + 1, is_own)


def version_of(tensor: torch.Tensor) -> int:
    """Return the tensor's version counter, which each in-place write increments; -1 if it has none."""
    try:
        return int(tensor._version)
    except RuntimeError:
        return -1  # created in inference mode


def versions_of(inputs: List[Tuple[str, Any]]) -> Dict[int, int]:
    """Return the version counters of the tensors in named values, by the ``id`` of the tensor."""
    found: Dict[int, int] = {}
    with raw_tensor.without_dispatch():
        for name, value in inputs:
            for _, tensor in tensors_in_value(name, value):
                found[id(tensor)] = version_of(tensor)
            if isinstance(value, torch.nn.Module):
                for buffer in value.buffers():
                    found[id(buffer)] = version_of(buffer)
    return found


class WrittenState:
    """The state that some functions can write to: containers, objects of the script's classes, globals and cells."""

    def __init__(self, is_user_class: Callable[[type], bool]) -> None:
        self._is_user_class = is_user_class
        self._objects: List[Any] = []
        self._global_names: Set[str] = set()
        self._cells: List[Any] = []

    def add(self, function: Any) -> None:
        """Note the state that a function, such as a hook of the script, can write to."""
        for name, value in reachable_values(function):
            if isinstance(value, _CONTAINERS) or (hasattr(value, "__dict__") and self._is_user_class(type(value))):
                self._objects.append(value)
            elif "." in name:  # of a class, which the function names
                self._global_names.add(name)
        global_names, cells = _assigned_outside(function)
        self._global_names.update("global " + name for name in global_names)
        self._cells += cells

    def includes(self, name: str, value: Any) -> bool:
        """Return True if they can write to the value, or to the global of this name (``global x``)."""
        return name in self._global_names or any(value is held for held in self._objects)

    def cells_of(self, function: Any) -> Iterator[str]:
        """Yield the names of a function's cells that they assign to."""
        if self._cells and isinstance(function, (types.FunctionType, types.MethodType)):
            for name, cell in closure_cells(inspect.unwrap(function)):
                if any(cell is held for held in self._cells):
                    yield name


def _assigned_outside(function: Any) -> Tuple[Set[str], List[Any]]:
    """Return the names of the globals and the cells that a function, or one inside it, assigns to."""
    inner = getattr(function, "__func__", function)
    code = getattr(inner, "__code__", None)
    if not isinstance(code, types.CodeType):
        return set(), []
    stored = [(item.opname, item.argval) for part in _codes_in(code) for item in dis.get_instructions(part)]
    names = {name for operation, name in stored if operation == "STORE_GLOBAL"}
    return names, [cell for name, cell in closure_cells(inner) if ("STORE_DEREF", name) in stored]
