"""Attribute state to hooks: the containers, objects, globals and cells that a registered hook can write to."""

from __future__ import annotations

import collections
import dis
import inspect
import types
from typing import Any, Callable, Iterator, List, Set, Tuple

from .reachable import closure_cells, reachable_values

_CONTAINERS = (list, dict, set, collections.deque)


class HookWrites:
    """The state that the script's hooks can write to.

    Args:
        is_user_class: returns True for a class of the script.
    """

    def __init__(self, is_user_class: Callable[[type], bool]) -> None:
        self._is_user_class = is_user_class
        self._objects: List[Any] = []
        self._global_names: Set[str] = set()
        self._cells: List[Any] = []

    def add(self, hook: Any) -> None:
        """Note the state that a function, which the script registered as a hook, can write to."""
        for _, value in reachable_values(hook):
            if isinstance(value, _CONTAINERS) or (hasattr(value, "__dict__") and self._is_user_class(type(value))):
                self._objects.append(value)
        global_names, cells = _assigned_outside(hook)
        self._global_names.update("global " + name for name in global_names)
        self._cells += cells

    def includes(self, name: str, value: Any) -> bool:
        """Return True if a hook can write to the value, or to the global of this name (``global x``)."""
        return name in self._global_names or any(value is held for held in self._objects)

    def cells_of(self, function: Any) -> Iterator[str]:
        """Yield the names of a function's cells that a hook assigns to."""
        if self._cells and isinstance(function, (types.FunctionType, types.MethodType)):
            for name, cell in closure_cells(inspect.unwrap(function)):
                if any(cell is held for held in self._cells):
                    yield name


def _assigned_outside(function: Any) -> Tuple[Set[str], List[Any]]:
    """Return the names of the globals and the cells that a function assigns to."""
    inner = getattr(function, "__func__", function)
    code = getattr(inner, "__code__", None)
    if not isinstance(code, types.CodeType):
        return set(), []
    stored = [(item.opname, item.argval) for item in dis.get_instructions(code)]
    names = {name for operation, name in stored if operation == "STORE_GLOBAL"}
    outer = {name for operation, name in stored if operation == "STORE_DEREF"}
    return names, [cell for name, cell in closure_cells(inner) if name in outer]
