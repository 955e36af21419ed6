"""Run eager with the other choice among equal elements, in operators whose result PyTorch leaves open.

PyTorch does not specify the index that ``argmax`` returns for several equal maxima, nor the order in which an unstable
sort leaves equal elements. Its own fuzzers do not compare such indices. A script whose compiled run differs is
therefore run once more, eagerly, with the opposite choice. A difference that then disappears is no mismatch. The
gradients follow the choice.
"""

from __future__ import annotations

import re
from typing import Any, Dict, Optional, Tuple

import torch
from torch.utils._python_dispatch import TorchDispatchMode

_TIE_OPERATORS = re.compile(r"\b(?:argmax|argmin|argsort|sort|topk|max|min|median|mode|kthvalue)\b")
_INDEX_ONLY = ("aten::argmax", "aten::argmin")
_VALUES_AND_INDICES = (
    "aten::max",
    "aten::min",
    "aten::sort",
    "aten::topk",
    "aten::median",
    "aten::mode",
    "aten::kthvalue",
)
_DEFAULT_LAST_DIM = ("aten::sort", "aten::topk", "aten::mode", "aten::kthvalue")


def may_have_ties(source: str) -> bool:
    """Return True if a script's source names an operator that chooses among equal elements."""
    return _TIE_OPERATORS.search(source) is not None


class ReversedTies(TorchDispatchMode):
    """A mode that runs such operators on the reversed elements and converts the indices back."""

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Tuple[Any, ...] = (), kwargs: Optional[Dict[str, Any]] = None
    ) -> Any:
        kwargs = kwargs or {}
        name = func._schema.name
        if name in _INDEX_ONLY or name in _VALUES_AND_INDICES:
            given = _arguments_by_name(func, args, kwargs)
            tensor = given.pop("self", None)
            if isinstance(tensor, torch.Tensor) and tensor.dim() and tensor.numel() and not given.get("stable"):
                result = _with_reversed_elements(func, name, tensor, given)
                if result is not None:
                    return result
        return func(*args, **kwargs)


def _arguments_by_name(func: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Dict[str, Any]:
    given = dict(zip((argument.name for argument in func._schema.arguments), args))
    given.update(kwargs)
    return given


def _with_reversed_elements(func: Any, name: str, tensor: torch.Tensor, given: Dict[str, Any]) -> Optional[Any]:
    """Return the operator's result with the other choice; ``None`` for an overload that returns no indices."""
    if name in _INDEX_ONLY and given.get("dim") is None:
        index = tensor.numel() - 1 - func(tensor.reshape(-1).flip(0), 0)
        return index.reshape([1] * tensor.dim()) if given.get("keepdim") else index
    parameters = [argument.name for argument in func._schema.arguments]
    if (
        "dim" not in parameters
        or "out" in func._schema.overload_name
        or any(item in parameters for item in ("indices", "out"))
    ):
        return None
    dim = given.setdefault("dim", -1 if name in _DEFAULT_LAST_DIM else None)
    if dim is None:
        return None
    last = tensor.shape[dim] - 1
    result = func(tensor.flip(dim), **given)
    if name in _INDEX_ONLY:
        return last - result
    return (result[0], last - result[1])
