"""Keep the agent's own code from being compiled.

Dynamo intercepts every frame that runs while a compiled region is open. After a graph break or in a backward hook that
includes the agent's frames. Compiling them would cost seconds and would count as graphs of the script.
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


def skip_frame(function: F) -> F:
    """Mark a function so that its own frame is never compiled; the functions it calls still are."""
    if _skip_code is not None:
        _skip_code(function.__code__)
    return function


def disable_compile(function: F) -> F:
    """Return a function that runs, with everything it calls, with the compiler off."""
    disabled: F = torch._dynamo.disable(function)
    return disabled


def is_compiling() -> bool:
    """Return True while the caller is traced; dynamo replaces this call by a constant when it traces it."""
    return bool(_is_compiling())
