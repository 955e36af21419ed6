"""Eager runs in double precision, with ties reversed, or with random numbers of their own: is a difference a bug?

PyTorch compares a compiled result with a double-precision run. It leaves open the choice among equal elements, and
compiled code may draw random numbers in another order.
"""

from __future__ import annotations

import contextlib
import math
import re
import warnings
from typing import Any, Callable, Dict, Optional, Tuple

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

_WIDER = dict.fromkeys((torch.float32, torch.float16, torch.bfloat16), torch.float64)
_WIDER.update(dict.fromkeys((torch.complex64, torch.complex32), torch.complex128))
# ``_like`` and in-place forms of these take their dtype from a tensor that is already wide.
_RANDOM = ("rand", "normal", "uniform", "bernoulli", "dropout", "exponential", "multinomial", "log_normal", "cauchy")
# These reinterpret bits, and widening would change the meaning of the bits.
_BIT_OPERATORS = ("aten::view.dtype", "aten::set_", "aten::resize_", "aten::_resize_output_")

_TIE_OPERATORS = re.compile(r"\b(?:argmax|argmin|argsort|sort|topk|max|min|median|mode|kthvalue)\b")
_INDEX_ONLY = ("aten::argmax", "aten::argmin")
_DEFAULT_LAST_DIM = ("aten::sort", "aten::topk", "aten::mode", "aten::kthvalue")
_VALUES_AND_INDICES = ("aten::max", "aten::min", "aten::median", *_DEFAULT_LAST_DIM)


def widen(value: Any) -> Any:
    """Return a floating-point tensor in double precision, and any other value unchanged."""
    if type(value) in (torch.Tensor, torch.nn.Parameter) and value.dtype in _WIDER:
        return value.to(_WIDER[value.dtype])
    return value


class DoublePrecision(TorchDispatchMode):
    """A mode in which every operation takes and returns double-precision numbers, as the reference for errors.

    PyTorch judges a compiled result by its error against such a run, compared with the error of eager
    (``torch/_dynamo/utils.py::same``, ``debug_utils.py::same_two_models`` with ``cast_to_fp64``). It casts a model and
    rewrites the dtypes in a graph. A script has neither, so the mode rewrites the dtypes of every operation. Random
    numbers are drawn in the script's precision and then widen, because a generator returns others in double precision.
    """

    def __torch_dispatch__(
        self, function: Any, kinds: Any, args: Any = (), kwargs: Optional[Dict[str, Any]] = None
    ) -> Any:
        """Run one operation on widened arguments."""
        kwargs = dict(kwargs or {})
        name = function._schema.name
        base = name.rpartition("::")[2]
        if name in _BIT_OPERATORS:
            return function(*args, **kwargs)
        if base.startswith(_RANDOM) or base.endswith("dropout"):
            return self._draw(function, base, args, kwargs)
        mutates = function._schema.is_mutable
        if not mutates and not _is_view(function):
            args, kwargs = tree_map(widen, args), tree_map(widen, kwargs)
        elif mutates and args and _is_wide(args[0]):
            args = (args[0], *tree_map(widen, tuple(args[1:])))
        args = tuple(_WIDER.get(item, item) if isinstance(item, torch.dtype) else item for item in args)
        if isinstance(kwargs.get("dtype"), torch.dtype):
            kwargs["dtype"] = _WIDER.get(kwargs["dtype"], kwargs["dtype"])
        result = function(*args, **kwargs)
        # An in-place operation returns its argument, which must stay the same tensor object.
        return result if mutates or _is_view(function) else tree_map(widen, result)

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


def _is_wide(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.dtype in (torch.float64, torch.complex128)


def _is_view(function: Any) -> bool:
    """Return True for an operation whose result shares memory with its argument.

    A tensor that was made outside of the mode is not wide, and a view of a wide copy of it would lose what is written.
    """
    return any(found.alias_info is not None for found in function._schema.returns)


def may_have_ties(source: str) -> bool:
    """Return True if a script's source names an operator that chooses among equal elements."""
    return _TIE_OPERATORS.search(source) is not None


class ReversedTies(TorchDispatchMode):
    """A mode in which operators make the other choice among equal elements: reverse them, convert the indices back.

    PyTorch does not specify the index that ``argmax`` returns for several equal maxima, nor the order in which an
    unstable sort leaves equal elements. Its own fuzzers do not compare such indices. The gradients follow the choice.
    """

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Tuple[Any, ...] = (), kwargs: Optional[Dict[str, Any]] = None
    ) -> Any:
        kwargs = kwargs or {}
        name = func._schema.name
        if name in _INDEX_ONLY or name in _VALUES_AND_INDICES:
            given = {**dict(zip((argument.name for argument in func._schema.arguments), args)), **kwargs}
            tensor = given.pop("self", None)
            if isinstance(tensor, torch.Tensor) and tensor.dim() and tensor.numel() and not given.get("stable"):
                result = _with_reversed_elements(func, name, tensor, given)
                if result is not None:
                    return result
        return func(*args, **kwargs)


def _with_reversed_elements(func: Any, name: str, tensor: torch.Tensor, given: Dict[str, Any]) -> Optional[Any]:
    """Return the operator's result with the other choice; ``None`` for an overload that returns no indices."""
    if name in _INDEX_ONLY and given.get("dim") is None:
        index = tensor.numel() - 1 - func(tensor.reshape(-1).flip(0), 0)
        return index.reshape([1] * tensor.dim()) if given.get("keepdim") else index
    parameters = [argument.name for argument in func._schema.arguments]
    if "dim" not in parameters or "out" in func._schema.overload_name or {"indices", "out"} & set(parameters):
        return None
    dim = given.setdefault("dim", -1 if name in _DEFAULT_LAST_DIM else None)
    if dim is None:
        return None
    last = tensor.shape[dim] - 1
    result = func(tensor.flip(dim), **given)
    return last - result if name in _INDEX_ONLY else (result[0], last - result[1])


class DeterministicRandom:
    """A context in which each random draw on the CPU gives the same numbers.

    They stay until the end of the process, because the exit handlers of a script may still draw, unless ``restores``.
    Compiled code may omit a draw whose result is unused. Up to torch 2.8 inductor also reordered draws, even when told
    to draw as eager does. Neither is a mismatch, and with these draws neither shows.
    """

    def __init__(self, restores: bool = False) -> None:
        self._library: Any = None
        self._restores = restores

    def __enter__(self) -> None:
        self._library = torch.library.Library("aten", "IMPL")
        with warnings.catch_warnings(), contextlib.suppress(RuntimeError):
            warnings.simplefilter("ignore")
            for name, implementation in _IMPLEMENTATIONS.items():
                self._library.impl(name, implementation, "CPU")

    def __exit__(self, *error: Any) -> None:
        """Remove the implementations, if they don't have to stay."""
        if self._restores:
            self._library._destroy()


def _pseudo_random(like: torch.Tensor) -> torch.Tensor:
    """Return numbers in (0, 1) that look random, one for each element."""
    numbers = torch.arange(1, like.numel() + 1, dtype=torch.float64)
    return ((numbers * 12.9898).sin() * 43758.5453).frac().abs().clamp(1e-6, 1 - 1e-6).reshape(like.shape)


def _uniform(own: torch.Tensor, low: float = 0.0, high: float = 1.0, *, generator: Any = None) -> torch.Tensor:
    return own.copy_(_pseudo_random(own) * (high - low) + low)


def _normal(own: torch.Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Any = None) -> torch.Tensor:
    return own.copy_((2 * _pseudo_random(own) - 1).erfinv() * (math.sqrt(2) * std) + mean)


def _bernoulli(own: torch.Tensor, p: Any = 0.5, *, generator: Any = None) -> torch.Tensor:
    return own.copy_(_pseudo_random(own) < p)


def _exponential(own: torch.Tensor, rate: float = 1.0, *, generator: Any = None) -> torch.Tensor:
    return own.copy_(-_pseudo_random(own).log() / rate)


def _integers(own: torch.Tensor, low: int, high: Optional[int], *, generator: Any = None) -> torch.Tensor:
    return own.copy_((_pseudo_random(own) * (max(low + 1, high or low + 2) - low)).floor() + low)


def _integers_below(own: torch.Tensor, high: int, *, generator: Any = None) -> torch.Tensor:
    return _integers(own, 0, high)


_IMPLEMENTATIONS = {
    "uniform_": _uniform,
    "normal_": _normal,
    "bernoulli_.float": _bernoulli,
    "bernoulli_.Tensor": _bernoulli,
    "exponential_": _exponential,
    "random_.from": _integers,
    "random_.to": _integers_below,
}

#: The modes by the role of the run that is made in them (``child.Job``).
MODES: Dict[str, Callable[[], Any]] = {
    "float64": DoublePrecision,
    "reversed_ties": ReversedTies,
    "deterministic_rng": DeterministicRandom,
}
