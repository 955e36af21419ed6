"""List the compiler flags that a program has changed, as the statements that change them."""

from __future__ import annotations

import functools
import importlib
from typing import Any

import torch

_MODULES = ("torch._dynamo.config", "torch._inductor.config", "torch._functorch.config")
# Set by torchbisect itself, so that compiled code draws random numbers as eager code does.
_OWN_FLAG = "torch._inductor.config.fallback_random"


@functools.cache
def first_flags() -> dict[str, Any]:
    """Return the value that each flag had when this was first called, by its full name."""
    return _flags()


def changed_flags() -> list[str]:
    """Return the statements that set the default dtype and the compiler's flags to what they were changed to."""
    known = first_flags()
    found = [f"{name} = {value!r}" for name, value in _flags().items() if known.get(name, value) != value]
    if torch.get_default_dtype() is not torch.float32:
        found.insert(0, f"torch.set_default_dtype({torch.get_default_dtype()})")
    return found


def _flags() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in _MODULES:
        module: Any = importlib.import_module(name)
        copy: Any = getattr(module, "get_config_copy", None) or getattr(module, "shallow_copy_dict", dict)
        found.update((f"{name}.{flag}", value) for flag, value in copy().items())
    plain = (bool, int, float, str, type(None))
    return {name: value for name, value in found.items() if isinstance(value, plain) and name != _OWN_FLAG}
