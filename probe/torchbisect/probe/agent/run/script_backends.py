"""Keep apart what a backend of the script does itself: only a compiled run calls it, so it would always differ.

Many scripts count or print the graphs in a backend of their own. What that prints while it compiles is dropped, and the
state that it can write to is not compared.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import sys
import types
from typing import Any, Callable, Iterator

import torch._dynamo.output_graph

from ..capture.reachable import cell_values

_MOST_NESTED = 4


def functions_of_backend(backend: Any, depth: int = 0) -> Iterator[Callable[..., Any]]:
    """Yield the Python functions behind a backend: itself, its ``__call__``, and those that it was made with.

    ``aot_autograd(fw_compiler=f)`` and ``functools.partial(f)`` are made with ``f``.
    """
    if isinstance(backend, (types.FunctionType, types.MethodType)):
        yield backend
        made_with = [value for _, value in cell_values(backend)]
    elif isinstance(backend, functools.partial):
        made_with = [backend.func, *backend.args, *backend.keywords.values()]
    else:
        options = getattr(backend, "__dict__", {}).get("kwargs")  # of ``AotAutograd``
        made_with = list(options.values()) if isinstance(options, dict) else []
        method = inspect.getattr_static(type(backend), "__call__", None)
        if isinstance(method, types.FunctionType):
            yield types.MethodType(method, backend)
    for part in made_with if depth < _MOST_NESTED else ():
        if callable(part) and not isinstance(part, (type, torch.nn.Module)):
            yield from functions_of_backend(part, depth + 1)


def silence_backends(applies: Callable[[], bool]) -> None:
    """Drop what is printed while Dynamo has a graph compiled, where ``applies`` returns True."""
    real = getattr(torch._dynamo.output_graph.OutputGraph, "call_user_compiler", None)
    if real is None:
        return

    @functools.wraps(real)
    def call_user_compiler(*args: Any, **kwargs: Any) -> Any:
        with _nothing_printed() if applies() else contextlib.nullcontext():
            return real(*args, **kwargs)

    torch._dynamo.output_graph.OutputGraph.call_user_compiler = call_user_compiler


@contextlib.contextmanager
def _nothing_printed() -> Iterator[None]:
    sys.stdout.flush()
    kept, nothing = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.close(nothing)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)
