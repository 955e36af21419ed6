"""A tensor as an expression: by value where the value matters, by form where it looks random.

Index tensors, masks and constants decide what a program does; a random-looking matrix of floats seldom does, and
written out it would bury the script.
"""

from __future__ import annotations

import math
from typing import Any, List, Optional, Tuple

import torch

from ..capture import raw_tensor

SMALL_WHOLE = 32
SMALL_FLOAT = 12
_DEFAULT = {torch.float32, torch.int64, torch.bool}
_FORMATS = {4: "torch.channels_last", 5: "torch.channels_last_3d"}


def tensor_text(tensor: torch.Tensor) -> Optional[Tuple[str, bool]]:
    """An expression for a tensor, and whether it gives the same values; ``None`` for layouts that can't be said."""
    is_parameter = isinstance(tensor, torch.nn.Parameter)
    if not is_parameter and type(tensor) is not torch.Tensor:
        return None
    requires_grad = tensor.requires_grad
    tensor = raw_tensor.unwrapped(tensor)
    if tensor.layout is not torch.strided or tensor.is_nested or tensor.is_quantized:
        return None
    data = raw_tensor.strided(tensor)
    if data is None:
        if tensor.device.type != "meta":
            return None
        text, exact = _factory("empty", list(tensor.shape), tensor, []), True
        suffix = ""
    else:
        base, data, suffix = _untwisted(tensor, data)
        text, exact = _by_value(data, base) or (_by_form(data, base), False)
        text += suffix
    if is_parameter:
        return "torch.nn.Parameter({}{})".format(text, "" if requires_grad else ", requires_grad=False"), exact
    if requires_grad:
        text = text + ".requires_grad_()" if suffix else _with_keyword(text, "requires_grad=True")
    return text, exact


def _extras(tensor: torch.Tensor, dtype_is_plain: bool) -> List[str]:
    words = [] if dtype_is_plain else ["dtype={}".format(tensor.dtype)]
    if tensor.device.type != "cpu":
        words.append("device={!r}".format(str(tensor.device)))
    return words


def _factory(name: str, sizes: List[int], tensor: torch.Tensor, first: List[str], plain: Any = None) -> str:
    plain = tensor.dtype == torch.float32 if plain is None else plain
    shown = [str(size) for size in sizes] if sizes else ["()"]
    return "torch.{}({})".format(name, ", ".join([*first, *shown, *_extras(tensor, plain)]))


def _by_value(data: torch.Tensor, tensor: torch.Tensor) -> Optional[Tuple[str, bool]]:
    shape, numel = list(tensor.shape), tensor.numel()
    if numel == 0:
        return _factory("empty", shape, tensor, []), True
    flat = data.reshape(-1)
    whole = not (data.is_floating_point() or data.is_complex())
    if data.is_complex():
        return None
    first = flat[0].item()
    if numel > 1 and bool((flat == first).all()):
        return _constant(first, shape, tensor), True
    if data.dim() == 1 and numel > 3 and data.dtype is not torch.bool:
        counted = torch.arange(numel, dtype=data.dtype)
        if torch.equal(data, counted):
            end = str(numel) if whole or tensor.dtype != torch.float32 else "{}.0".format(numel)
            return "torch.arange({})".format(", ".join([end, *_extras(tensor, tensor.dtype in _DEFAULT)])), True
    if data.dim() == 2 and shape[0] == shape[1] and torch.equal(data, torch.eye(shape[0], dtype=data.dtype)):
        return "torch.eye({})".format(", ".join([str(shape[0]), *_extras(tensor, tensor.dtype == torch.float32)])), True
    if numel <= (SMALL_WHOLE if whole else SMALL_FLOAT) and (whole or all(map(_is_short, flat.tolist()))):
        words = [_listed(data.tolist()), *_extras(tensor, tensor.dtype in _DEFAULT)]
        return "torch.tensor({})".format(", ".join(words)), True
    return None


def _constant(value: Any, shape: List[int], tensor: torch.Tensor) -> str:
    if tensor.dtype is not torch.bool and value in (0, 1):
        return _factory("ones" if value else "zeros", shape, tensor, [])
    size = "({}{})".format(", ".join(map(str, shape)), "," if len(shape) == 1 else "")
    words = [size, _listed(value), *_extras(tensor, tensor.dtype in _DEFAULT)]
    return "torch.full({})".format(", ".join(words))


def _by_form(data: torch.Tensor, tensor: torch.Tensor) -> str:
    shape = list(tensor.shape)
    size = "({}{})".format(", ".join(map(str, shape)), "," if len(shape) == 1 else "")
    if tensor.dtype is torch.bool:
        return "(torch.rand({}) > 0.5)".format(", ".join(map(str, shape)) or "()")
    if not (data.is_floating_point() or data.is_complex()):
        low, high = int(data.min()), int(data.max()) + 1
        words = [str(low), str(high), size, *_extras(tensor, tensor.dtype is torch.int64)]
        return "torch.randint({})".format(", ".join(words))
    inside = data.is_floating_point() and bool(((data >= 0) & (data < 1)).all()) and data.numel() > 3
    return _factory("rand" if inside else "randn", shape, tensor, [])


def _is_short(value: float) -> bool:
    """Whether a person would have written this number; random ones have more digits."""
    return not math.isfinite(value) or math.isclose(float("{:.3g}".format(value)), value, rel_tol=1e-6, abs_tol=0.0)


def _listed(value: Any) -> str:
    if isinstance(value, list):
        return "[{}]".format(", ".join(map(_listed, value)))
    if isinstance(value, float):
        return "{!r}".format(float("{:.6g}".format(value))) if math.isfinite(value) else 'float("{}")'.format(value)
    return repr(value)


def _untwisted(tensor: torch.Tensor, data: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor, str]:
    """A contiguous tensor with its elements, and what to add to its expression to have the given one's strides."""
    shape, strides = list(tensor.shape), list(tensor.stride())
    if tensor.is_contiguous() or tensor.numel() == 0:
        return tensor, data, ""
    if tensor.dim() in _FORMATS:
        name = _FORMATS[tensor.dim()]
        if tensor.is_contiguous(memory_format=getattr(torch, name.partition(".")[2])):
            return tensor, data, ".to(memory_format={})".format(name)
    order = sorted(range(tensor.dim()), key=lambda axis: -strides[axis])
    if 0 not in strides and _is_dense(shape, strides, order):
        back = [order.index(axis) for axis in range(tensor.dim())]
        suffix = ".t()" if tensor.dim() == 2 else ".permute({})".format(_joined(back))
        return tensor.permute(order), data.permute(order), suffix
    if 0 in strides:
        suffix = ".expand({})".format(_joined(shape))
        for axis in [axis for axis, step in enumerate(strides) if step == 0]:
            tensor, data = tensor.narrow(axis, 0, 1), data.narrow(axis, 0, 1)
        base, data, inner = _untwisted(tensor, data)
        return base, data, inner + suffix
    room = 1 + sum((size - 1) * step for size, step in zip(shape, strides))
    lined = torch.zeros(room, dtype=data.dtype)
    lined.as_strided(shape, strides).copy_(data)
    suffix = ".as_strided(({}), ({}))".format(_joined(shape, True), _joined(strides, True))
    return lined.to(tensor.device), lined, suffix


def _is_dense(shape: List[int], strides: List[int], order: List[int]) -> bool:
    expected = 1
    for axis in reversed(order):
        if shape[axis] != 1 and strides[axis] != expected:
            return False
        expected *= shape[axis]
    return True


def _joined(values: List[int], tuple_like: bool = False) -> str:
    return ", ".join(map(str, values)) + ("," if tuple_like and len(values) == 1 else "")


def _with_keyword(text: str, keyword: str) -> str:
    return text[:-1] + (", " if not text.endswith("()") else "") + keyword + ")"
