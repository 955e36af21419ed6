"""An eager run that chooses otherwise where eager is free to choose: which of equal elements an operator names.

Which of several equal maxima ``argmax`` names, and in which order a sort that isn't stable leaves equal elements,
PyTorch leaves open, and its own fuzzers don't compare such indices. So a script whose compiled run differs is run once
more with the choice turned round; what then agrees with the compiled run is no mismatch. Gradients follow the choice.
"""

from __future__ import annotations

import re
from typing import Any, Dict, Optional, Tuple

import torch
from torch.utils._python_dispatch import TorchDispatchMode

_CHOOSES = re.compile(r"\b(?:argmax|argmin|argsort|sort|topk|max|min|median|mode|kthvalue)\b")
_ARGUMENT = ("aten::argmax", "aten::argmin")
_PAIRS = ("aten::max", "aten::min", "aten::sort", "aten::topk", "aten::median", "aten::mode", "aten::kthvalue")
_LAST = ("aten::sort", "aten::topk", "aten::mode", "aten::kthvalue")


def may_choose(source: str) -> bool:
    """Whether a script may hold an operator that chooses among equals."""
    return _CHOOSES.search(source) is not None


class OtherChoice(TorchDispatchMode):
    """Runs such operators on the reversed elements, and counts the indices back."""

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Tuple[Any, ...] = (), kwargs: Optional[Dict[str, Any]] = None
    ) -> Any:
        kwargs = kwargs or {}
        name = func._schema.name
        if name in _ARGUMENT or name in _PAIRS:
            given = _bound(func, args, kwargs)
            own = given.pop("self", None)
            if isinstance(own, torch.Tensor) and own.dim() and own.numel() and not given.get("stable"):
                turned = _turned(func, name, own, given)
                if turned is not None:
                    return turned
        return func(*args, **kwargs)


def _bound(func: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Dict[str, Any]:
    given = dict(zip((argument.name for argument in func._schema.arguments), args))
    given.update(kwargs)
    return given


def _turned(func: Any, name: str, own: torch.Tensor, given: Dict[str, Any]) -> Optional[Any]:
    """What the operator gives with the other choice; ``None`` for a form of it that gives no indices."""
    if name in _ARGUMENT and given.get("dim") is None:
        index = own.numel() - 1 - func(own.reshape(-1).flip(0), 0)
        return index.reshape([1] * own.dim()) if given.get("keepdim") else index
    takes = [argument.name for argument in func._schema.arguments]
    if "dim" not in takes or "out" in func._schema.overload_name or any(item in takes for item in ("indices", "out")):
        return None
    dim = given.setdefault("dim", -1 if name in _LAST else None)
    if dim is None:
        return None
    last = own.shape[dim] - 1
    result = func(own.flip(dim), **given)
    if name in _ARGUMENT:
        return last - result
    return (result[0], last - result[1])
