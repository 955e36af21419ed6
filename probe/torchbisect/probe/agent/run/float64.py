"""The same script once more with all floating-point numbers in double precision: what errors are measured against.

PyTorch judges a compiled result by its error against a double-precision run, next to eager's own error
(``torch/_dynamo/utils.py::same``, ``debug_utils.py::same_two_models`` with ``cast_to_fp64``). It casts a model and
rewrites the dtypes in a graph; a script has neither, so here the dtypes are rewritten where every operation of an eager
run passes, in a dispatch mode. Random numbers are drawn in the precision that the script asked for and widened then: a
generator gives other numbers in double precision.
"""

from __future__ import annotations

from typing import Any, Dict, Optional

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

NARROW = (torch.float32, torch.float16, torch.bfloat16)
_WIDER = {torch.complex64: torch.complex128, **dict.fromkeys(NARROW, torch.float64)}
_complex32 = getattr(torch, "complex32", None)
if _complex32 is not None:
    _WIDER[_complex32] = torch.complex128

# Draw from the generator; ``_like`` and in-place forms take the dtype from a tensor that is already wide.
_RANDOM = (
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
# Reinterpret bits: widening would change what they mean.
_BITS = ("aten::view.dtype", "aten::set_", "aten::resize_", "aten::_resize_output_")


def widened(value: Any) -> Any:
    """A floating-point tensor in double precision; anything else as it is."""
    if type(value) in (torch.Tensor, torch.nn.Parameter) and value.dtype in _WIDER:
        return value.to(_WIDER[value.dtype])
    return value


class DoublePrecision(TorchDispatchMode):
    """While active, every operation works on and gives double-precision numbers."""

    def __torch_dispatch__(
        self, function: Any, kinds: Any, args: Any = (), kwargs: Optional[Dict[str, Any]] = None
    ) -> Any:
        """Run one operation on widened arguments."""
        kwargs = dict(kwargs or {})
        name = function._schema.name
        base = name.rpartition("::")[2]
        if name in _BITS:
            return function(*args, **kwargs)
        if base.startswith(_RANDOM) or base.endswith("dropout"):
            return self._drawn(function, base, args, kwargs)
        mutates = function._schema.is_mutable
        if not mutates:
            args, kwargs = tree_map(widened, args), tree_map(widened, kwargs)
        elif args and isinstance(args[0], torch.Tensor) and args[0].dtype in (torch.float64, torch.complex128):
            args = (args[0], *tree_map(widened, tuple(args[1:])))
        args = tuple(_WIDER.get(item, item) if isinstance(item, torch.dtype) else item for item in args)
        if isinstance(kwargs.get("dtype"), torch.dtype):
            kwargs["dtype"] = _WIDER.get(kwargs["dtype"], kwargs["dtype"])
        result = function(*args, **kwargs)
        # In-place operations return their argument, which must stay the very same tensor.
        return result if mutates else tree_map(widened, result)

    def _drawn(self, function: Any, base: str, args: Any, kwargs: Dict[str, Any]) -> Any:
        """Draw in the precision that the script would have had (single, where that is no longer known), then widen."""
        if function._schema.is_mutable and args and args[0].dtype is torch.float64:
            narrow = args[0].to(torch.float32)
            function(narrow, *args[1:], **kwargs)
            args[0].copy_(narrow)
            return args[0]
        if base.endswith("_like") and kwargs.get("dtype") is None and args[0].dtype is torch.float64:
            kwargs["dtype"] = torch.float32
        return tree_map(widened, function(*args, **kwargs))
