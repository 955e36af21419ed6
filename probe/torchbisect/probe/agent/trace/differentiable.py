"""Find the tensor in the result of a call at which a backward pass may begin."""

from __future__ import annotations

from typing import Any, Iterator, List, Tuple

import torch

MAX_DEPTH = 3


def differentiable_paths(result: Any) -> List[str]:
    """Return what follows a call to give the first tensor that requires a gradient, such as ``[0]``, or nothing."""
    return list(_paths(result, "", 0))[:1]


def _paths(value: Any, path: str, depth: int) -> Iterator[str]:
    if isinstance(value, torch.Tensor):
        if value.requires_grad:
            yield path
        return
    if depth < MAX_DEPTH:
        for step, item in _items(value):
            yield from _paths(item, path + step, depth + 1)


def _items(value: Any) -> Iterator[Tuple[str, Any]]:
    if isinstance(value, (list, tuple)):
        for number, item in enumerate(value):
            yield "[{}]".format(number), item
    elif isinstance(value, dict):
        for key, item in value.items():
            if isinstance(key, (str, int)):
                yield "[{!r}]".format(key), item
    elif type(value).__module__ == "__main__" and not isinstance(value, (type, torch.nn.Module)):
        for name, item in getattr(value, "__dict__", {}).items():
            yield "." + name, item
