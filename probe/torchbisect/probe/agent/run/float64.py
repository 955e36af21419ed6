"""Run a script with all floating-point numbers in double precision, as the reference for measuring errors.

PyTorch judges a compiled result by its error against a double-precision run, compared with the error of eager
(``torch/_dynamo/utils.py::same``, ``debug_utils.py::same_two_models`` with ``cast_to_fp64``). PyTorch casts a model and
rewrites the dtypes in a graph. A script has neither, so a dispatch mode rewrites the dtypes of every operation of an
eager run. Random numbers are drawn in the script's precision and then widen, because a generator returns other numbers
in double precision.
"""

from __future__ import annotations

from typing import Any, Dict, Optional

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

_NARROW = (torch.float32, torch.float16, torch.bfloat16)
_WIDER = {torch.complex64: torch.complex128, **dict.fromkeys(_NARROW, torch.float64)}
_complex32 = getattr(torch, "complex32", None)
if _complex32 is not None:
    _WIDER[_complex32] = torch.complex128

# These draw random numbers. ``_like`` and in-place forms take their dtype from a tensor that is already wide.
_RANDOM_OPERATORS = (
    "rand",
    "randn",
    "normal",
    "uniform",
    "bernoulli",
    "dropout",
    "exponential",
    "multinomial",
    "log_normal",
    "cauchy",
)
# These reinterpret bits, and widening would change the meaning of the bits.
_BIT_OPERATORS = ("aten::view.dtype", "aten::set_", "aten::resize_", "aten::_resize_output_")


def widen(value: Any) -> Any:
    """Return a floating-point tensor in double precision, and any other value unchanged."""
    if type(value) in (torch.Tensor, torch.nn.Parameter) and value.dtype in _WIDER:
        return value.to(_WIDER[value.dtype])
    return value


class DoublePrecision(TorchDispatchMode):
    """A mode in which every operation takes and returns double-precision numbers."""

    def __torch_dispatch__(
        self, function: Any, kinds: Any, args: Any = (), kwargs: Optional[Dict[str, Any]] = None
    ) -> Any:
        """Run one operation on widened arguments."""
        kwargs = dict(kwargs or {})
        name = function._schema.name
        base = name.rpartition("::")[2]
        if name in _BIT_OPERATORS:
            return function(*args, **kwargs)
        if base.startswith(_RANDOM_OPERATORS) or base.endswith("dropout"):
            return self._draw(function, base, args, kwargs)
        mutates = function._schema.is_mutable
        if not mutates:
            args, kwargs = tree_map(widen, args), tree_map(widen, kwargs)
        elif args and isinstance(args[0], torch.Tensor) and args[0].dtype in (torch.float64, torch.complex128):
            args = (args[0], *tree_map(widen, tuple(args[1:])))
        args = tuple(_WIDER.get(item, item) if isinstance(item, torch.dtype) else item for item in args)
        if isinstance(kwargs.get("dtype"), torch.dtype):
            kwargs["dtype"] = _WIDER.get(kwargs["dtype"], kwargs["dtype"])
        result = function(*args, **kwargs)
        # An in-place operation returns its argument, which must stay the same tensor object.
        return result if mutates else tree_map(widen, result)

    def _draw(self, function: Any, base: str, args: Any, kwargs: Dict[str, Any]) -> Any:
        """Draw in the script's precision, or in single precision where that is unknown, and widen the result."""
        if function._schema.is_mutable and args and args[0].dtype is torch.float64:
            narrow = args[0].to(torch.float32)
            function(narrow, *args[1:], **kwargs)
            args[0].copy_(narrow)
            return args[0]
        if base.endswith("_like") and kwargs.get("dtype") is None and args[0].dtype is torch.float64:
            kwargs["dtype"] = torch.float32
        return tree_map(widen, function(*args, **kwargs))
