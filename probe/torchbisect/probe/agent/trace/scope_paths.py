"""Write an object as its path from a name in scope, such as ``self.model.body[0].weight`` or ``found["a"]``."""

from __future__ import annotations

import types
from collections import deque
from typing import Any, Collection, Deque, Iterator, Optional, Set, Tuple

import torch

from .value_source import Expression

MAX_VISITED = 1000
MAX_DEPTH = 6
MAX_ITEMS = 40
MODULE_TABLES = ("_modules", "_parameters", "_buffers")


def path_expression(value: Any, frame: Any, without: Collection[str] = ()) -> Optional[Expression]:
    """Return a shortest path to an object from a name of the frame that is none of ``without``.

    The objects are modules, parameters and those of the script's classes. What else is in scope has no identity that
    a script would miss.
    """
    kinds = (torch.nn.Module, torch.nn.Parameter)
    if not isinstance(value, kinds) and (type(value).__module__ != "__main__" or isinstance(value, (type, tuple))):
        return None
    waiting: Deque[Tuple[str, Any, int]] = deque()
    for scope in (frame.f_locals, frame.f_globals):
        for name, held in list(scope.items()):
            if name not in without and not name.startswith("__"):
                waiting.append((name, held, 0))
    seen: Set[int] = set()
    while waiting and len(seen) < MAX_VISITED:
        text, held, depth = waiting.popleft()
        if held is value:
            return Expression(text, True)
        if id(held) not in seen and depth < MAX_DEPTH:
            seen.add(id(held))
            waiting.extend((text + step, part, depth + 1) for step, part in _parts(held))
    return None


def _parts(held: Any) -> Iterator[Tuple[str, Any]]:
    """Yield the parts of an object, each with what has to follow the object's path."""
    if isinstance(held, torch.nn.Module):
        by_key = isinstance(held, (torch.nn.ModuleDict, torch.nn.ParameterDict))
        for table in MODULE_TABLES:
            for name, part in list(vars(held).get(table, {}).items()):
                if by_key or name.isdigit():
                    yield "[{!r}]".format(name if by_key else int(name)), part
                elif name.isidentifier():
                    yield ".{}".format(name), part
    if isinstance(held, dict):
        for key, part in list(held.items())[:MAX_ITEMS]:
            if type(key) in (str, int):
                yield "[{!r}]".format(key), part
    elif type(held) in (list, tuple):
        for place, part in enumerate(held[:MAX_ITEMS]):
            yield "[{}]".format(place), part
    elif type(held).__module__ == "__main__" and not isinstance(held, (type, types.FunctionType)):
        for name, part in list(getattr(held, "__dict__", {}).items()):
            if name.isidentifier() and not name.startswith("_"):
                yield ".{}".format(name), part
