"""Find the values that a function can reach: arguments, ``self``, closure cells, globals; and the tensors in them."""

from __future__ import annotations

import inspect
import types
from typing import Any, Dict, Iterator, List, Optional, Tuple

import torch

from . import raw_tensor
from .snapshot import class_name


def call_inputs(target: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Iterator[Tuple[str, Any]]:
    """Yield everything that a call can read, by name: arguments, ``self``, cells and globals."""
    is_module = isinstance(target, torch.nn.Module)
    function = target.forward if is_module else target
    yield from _named_arguments(function, args, kwargs)
    seen = set()
    if is_module:
        yield "self", target
        seen.add("self")
    for name, value in reachable_values(function):
        if name not in seen:
            seen.add(name)
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


def reachable_values(function: Any, depth: int = 0) -> Iterator[Tuple[str, Any]]:
    """Yield the values that a function reads without being given them: its ``self``, its cells, the globals it names.

    The functions and the script's classes among these are followed two levels deep.
    """
    owner = getattr(function, "__self__", None)
    if owner is not None and not isinstance(owner, types.ModuleType):
        yield "self", owner
    inner = getattr(function, "__func__", function)
    for name, value in cell_values(inner):
        functions = _functions_of(value)
        if functions is None:
            yield "closure " + name, value
        elif depth < 2:
            for further in functions:
                yield from reachable_values(further, depth + 1)
    code, namespace = getattr(inner, "__code__", None), getattr(inner, "__globals__", None)
    if isinstance(code, types.CodeType) and isinstance(namespace, dict):
        for name in dict.fromkeys(_names_in(code)):
            value = namespace.get(name)
            functions = _functions_of(value)
            if functions is not None:
                for further in functions if depth < 2 else ():
                    if further.__globals__ is namespace:
                        yield from reachable_values(further, depth + 1)
            elif (
                value is not None and not isinstance(value, (types.ModuleType, type)) and not _is_torch_callable(value)
            ):
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


def _names_in(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names_in(constant)


def _functions_of(value: Any) -> Optional[List[types.FunctionType]]:
    """Return a function itself, or the methods of a script's class; ``None`` for any other value."""
    if isinstance(value, types.FunctionType):
        return [value]
    if isinstance(value, type) and value.__module__ == "__main__":
        return [item for item in vars(value).values() if isinstance(item, types.FunctionType)]
    return None


def _is_torch_callable(value: Any) -> bool:
    return callable(value) and not isinstance(value, torch.nn.Module) and class_name(value).startswith("torch")


def tensors_in_value(name: str, value: Any, depth: int = 0) -> Iterator[Tuple[str, torch.Tensor]]:
    """Yield the tensors in a value with their paths: in containers, modules and objects of the script's classes."""
    if isinstance(value, torch.Tensor):
        yield name, value
    elif isinstance(value, torch.nn.Module):
        for part, item in getattr(value, "_orig_mod", value).named_parameters():
            yield "{}.{}".format(name, part), item
    elif depth < 4 and isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            yield from tensors_in_value("{}[{}]".format(name, index), item, depth + 1)
    elif depth < 4 and isinstance(value, dict):
        for key, item in value.items():
            yield from tensors_in_value("{}[{!r}]".format(name, key), item, depth + 1)
    elif depth < 4 and not isinstance(value, type) and type(value).__module__ == "__main__":
        for key, item in vars(value).items() if hasattr(value, "__dict__") else ():
            yield from tensors_in_value("{}.{}".format(name, key), item, depth + 1)


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
