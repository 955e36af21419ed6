"""The agent's own code, kept out of the compiler's sight.

Dynamo looks at every frame that runs while a compiled region is open, and after a graph break or in a backward hook
that includes ours. Compiled, they would cost seconds and count as the script's graphs.
"""

from __future__ import annotations

from typing import Any, Callable, TypeVar

import torch
import torch._dynamo
import torch._dynamo.eval_frame

F = TypeVar("F", bound=Callable[..., Any])

_skip_code: Any = getattr(torch._dynamo.eval_frame, "skip_code", None)
_is_compiling: Any = getattr(getattr(torch, "compiler", None), "is_compiling", None) or getattr(
    torch._dynamo, "is_compiling", lambda: False
)


def frame(function: F) -> F:
    """A function whose own frame is never compiled; what it calls is treated as if it weren't there."""
    if _skip_code is not None:
        _skip_code(function.__code__)
    return function


def apart(function: F) -> F:
    """A function that runs with the compiler off, and all that it calls."""
    apart_from_it: F = torch._dynamo.disable(function)
    return apart_from_it


def is_compiling() -> bool:
    """Whether the caller is being traced; dynamo answers this for itself when it comes by."""
    return bool(_is_compiling())
