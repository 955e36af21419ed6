"""Write a tensor as an expression: exactly where its values matter, else by shape and dtype.

Index tensors, masks and constants determine the behavior of a program. A random-looking matrix of floats rarely does,
and its values would hide the rest of the script.
"""

from __future__ import annotations

import math
import struct
from typing import Any, List, Optional, Tuple

import torch

from ..capture import raw_tensor

MAX_INTEGERS = 32
MAX_FLOATS = 12
MAX_VALUES = 256
"""The most elements that are written out where a tensor has to have the same values."""
_DEFAULT_DTYPES = {torch.float32, torch.int64, torch.bool}
_CHANNELS_LAST = {4: "torch.channels_last", 5: "torch.channels_last_3d"}


def tensor_expression(tensor: torch.Tensor, *, by_value: bool = False) -> Optional[Tuple[str, bool]]:
    """Return an expression for a tensor, and True if it gives the same values; ``None`` for unsupported layouts.

    With ``by_value`` numbers that look random are written out too, up to ``MAX_VALUES`` of them. Of more, one that is
    not finite stands for all.
    """
    is_parameter = isinstance(tensor, torch.nn.Parameter)
    if not is_parameter and type(tensor) is not torch.Tensor:
        return None
    requires_grad = tensor.requires_grad
    tensor = raw_tensor.unwrap_functorch(tensor)
    if tensor.layout is not torch.strided or tensor.is_nested or tensor.is_quantized:
        return None
    data = raw_tensor.dense_on_cpu(tensor)
    if data is None:
        if tensor.device.type != "meta":
            return None
        text, exact, suffix = _factory("empty", list(tensor.shape), tensor), True, ""
    else:
        base, data, suffix = _contiguous_base(tensor, data)
        written = _exact_expression(data, base)
        if written is None and by_value and not data.is_complex():
            written = _with_numbers(data, base)
        text, exact = written or (_random_expression(data, base), False)
        text += suffix
    if is_parameter:
        return "torch.nn.Parameter({}{})".format(text, "" if requires_grad else ", requires_grad=False"), exact
    if requires_grad:
        text = text + ".requires_grad_()" if suffix else _with_keyword(text, "requires_grad=True")
    return text, exact


def _dtype_and_device(tensor: torch.Tensor, is_default_dtype: bool) -> List[str]:
    arguments = [] if is_default_dtype else ["dtype={}".format(tensor.dtype)]
    if tensor.device.type != "cpu":
        arguments.append("device={!r}".format(str(tensor.device)))
    return arguments


def _factory(name: str, sizes: List[int], tensor: torch.Tensor) -> str:
    shown = [str(size) for size in sizes] if sizes else ["()"]
    arguments = [*shown, *_dtype_and_device(tensor, tensor.dtype == torch.float32)]
    return "torch.{}({})".format(name, ", ".join(arguments))


def _exact_expression(data: torch.Tensor, tensor: torch.Tensor) -> Optional[Tuple[str, bool]]:
    shape, numel = list(tensor.shape), tensor.numel()
    if numel == 0:
        return _factory("empty", shape, tensor), True
    if data.is_complex():
        return None
    flat, whole = data.reshape(-1), not data.is_floating_point()
    first = flat[0].item()
    is_short_in_full = bool(shape) and tensor.dtype is torch.float32 and _is_one_or_zero(first)
    if (numel > 1 or is_short_in_full) and bool((flat == first).all()):
        return _constant(first, shape, tensor), True
    is_counted = data.dim() == 1 and numel > 3 and data.dtype is not torch.bool
    if is_counted and torch.equal(data, torch.arange(numel, dtype=data.dtype)):
        end = str(numel) if whole or tensor.dtype != torch.float32 else "{}.0".format(numel)
        arguments = [end, *_dtype_and_device(tensor, tensor.dtype in _DEFAULT_DTYPES)]
        return "torch.arange({})".format(", ".join(arguments)), True
    if data.dim() == 2 and shape[0] == shape[1] and torch.equal(data, torch.eye(shape[0], dtype=data.dtype)):
        arguments = [str(shape[0]), *_dtype_and_device(tensor, tensor.dtype == torch.float32)]
        return "torch.eye({})".format(", ".join(arguments)), True
    if numel <= (MAX_INTEGERS if whole else MAX_FLOATS) and (whole or all(map(_is_short, flat.tolist()))):
        return _written_out(data, tensor), True
    return None


def _with_numbers(data: torch.Tensor, tensor: torch.Tensor) -> Optional[Tuple[str, bool]]:
    if data.numel() <= MAX_VALUES:
        return _written_out(data, tensor), True
    flat = data.reshape(-1)
    rare = flat[~torch.isfinite(flat)] if data.is_floating_point() else flat[:0]
    return (_constant(rare[0].item(), list(tensor.shape), tensor), False) if rare.numel() else None


def _written_out(data: torch.Tensor, tensor: torch.Tensor) -> str:
    arguments = [_literal(data.tolist()), *_dtype_and_device(tensor, tensor.dtype in _DEFAULT_DTYPES)]
    return "torch.tensor({})".format(", ".join(arguments))


def _is_one_or_zero(value: Any) -> bool:
    """Return True for 1 and 0, but not for the negative zero."""
    return value in (0, 1) and math.copysign(1.0, value) > 0


def _constant(value: Any, shape: List[int], tensor: torch.Tensor) -> str:
    if tensor.dtype is not torch.bool and _is_one_or_zero(value):
        return _factory("ones" if value else "zeros", shape, tensor)
    size = "({})".format(_joined(shape, True))
    arguments = [size, _literal(value), *_dtype_and_device(tensor, tensor.dtype in _DEFAULT_DTYPES)]
    return "torch.full({})".format(", ".join(arguments))


def _random_expression(data: torch.Tensor, tensor: torch.Tensor) -> str:
    shape = list(tensor.shape)
    size = "({})".format(_joined(shape, True))
    if tensor.dtype is torch.bool:
        return "(torch.rand({}) > 0.5)".format(_joined(shape) or "()")
    if not (data.is_floating_point() or data.is_complex()):
        low, high = int(data.min()), int(data.max()) + 1
        arguments = [str(low), str(high), size, *_dtype_and_device(tensor, tensor.dtype is torch.int64)]
        return "torch.randint({})".format(", ".join(arguments))
    # What is never negative may have to stay so, for a logarithm or a root.
    is_uniform = data.is_floating_point() and bool((data >= 0).all()) and data.numel() > 3
    return _factory("rand" if is_uniform else "randn", shape, tensor)


def _is_short(value: float) -> bool:
    """Return True for a number of at most three significant digits; random numbers have more."""
    return not math.isfinite(value) or math.isclose(float("{:.3g}".format(value)), value, rel_tol=1e-6, abs_tol=0.0)


def _literal(value: Any) -> str:
    if isinstance(value, list):
        return "[{}]".format(", ".join(map(_literal, value)))
    if isinstance(value, float):
        return _float_literal(value) if math.isfinite(value) else 'float("{}")'.format(value)
    return repr(value)


def _float_literal(value: float) -> str:
    """Return the fewest digits that give a number of single precision again, or all of a double's."""
    if _single(value) != value:
        return repr(value)
    short = float("{:.6g}".format(value))
    return repr(short if _single(short) == _single(value) else float("{:.9g}".format(value)))


def _single(value: float) -> float:
    """Return a number as single precision holds it; the number itself where that can't."""
    try:
        return float(struct.unpack("f", struct.pack("f", value))[0])
    except OverflowError:
        return value


def _contiguous_base(tensor: torch.Tensor, data: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor, str]:
    """Return a contiguous tensor, its elements, and the suffix that gives its expression the original strides."""
    shape, strides = list(tensor.shape), list(tensor.stride())
    if tensor.is_contiguous() or tensor.numel() == 0:
        return tensor, data, ""
    if tensor.dim() in _CHANNELS_LAST:
        name = _CHANNELS_LAST[tensor.dim()]
        if tensor.is_contiguous(memory_format=getattr(torch, name.partition(".")[2])):
            return tensor, data, ".to(memory_format={})".format(name)
    order = sorted(range(tensor.dim()), key=lambda axis: -strides[axis])
    if 0 not in strides and _is_dense(shape, strides, order):
        inverse = [order.index(axis) for axis in range(tensor.dim())]
        suffix = ".t()" if tensor.dim() == 2 else ".permute({})".format(_joined(inverse))
        return tensor.permute(order), data.permute(order), suffix
    if 0 in strides:
        suffix = ".expand({})".format(_joined(shape))
        for axis in [axis for axis, step in enumerate(strides) if step == 0]:
            tensor, data = tensor.narrow(axis, 0, 1), data.narrow(axis, 0, 1)
        base, data, inner = _contiguous_base(tensor, data)
        return base, data, inner + suffix
    length = 1 + sum((size - 1) * step for size, step in zip(shape, strides))
    buffer = torch.zeros(length, dtype=data.dtype)
    buffer.as_strided(shape, strides).copy_(data)
    suffix = ".as_strided(({}), ({}))".format(_joined(shape, True), _joined(strides, True))
    return buffer.to(tensor.device), buffer, suffix


def _is_dense(shape: List[int], strides: List[int], order: List[int]) -> bool:
    expected = 1
    for axis in reversed(order):
        if shape[axis] != 1 and strides[axis] != expected:
            return False
        expected *= shape[axis]
    return True


def _joined(values: List[int], as_tuple: bool = False) -> str:
    return ", ".join(map(str, values)) + ("," if as_tuple and len(values) == 1 else "")


def _with_keyword(text: str, keyword: str) -> str:
    return text[:-1] + (", " if not text.endswith("()") else "") + keyword + ")"
