"""Read a tensor's metadata and elements without side effects on autograd, dispatch modes or subclasses.

Every function needed for that is bound when this module is imported, before any script runs. A script that patches
``torch.Tensor`` therefore does not affect the reads.
"""

from __future__ import annotations

import contextlib
from typing import Any, Dict, Iterator, Optional

import torch
from torch.utils._python_dispatch import _disable_current_modes

_Tensor = torch.Tensor
_detach = torch.Tensor.detach
_to_dense = torch.Tensor.to_dense
_cpu = torch.Tensor.cpu
_resolve_conj = torch.Tensor.resolve_conj
_resolve_neg = torch.Tensor.resolve_neg
_as_subclass = torch.Tensor.as_subclass
_no_grad = torch.no_grad
_base: Any = getattr(torch._C, "TensorBase", None) or torch._C._TensorBase
_is_leaf = _base.is_leaf.__get__
_grad = _base.grad.__get__
_requires_grad = _base.requires_grad.__get__
_functorch = getattr(torch._C, "_functorch", None)
_no_function = torch._C.DisableTorchFunction
_no_subclass = getattr(torch._C, "DisableTorchFunctionSubclass", torch._C.DisableTorchFunction)


@contextlib.contextmanager
def without_dispatch() -> Iterator[None]:
    """Disable autograd, dispatch modes and ``__torch_function__`` for the operations in this context."""
    with _no_subclass(), _no_function(), _disable_current_modes(), _no_grad():
        yield


def unwrap_functorch(tensor: torch.Tensor) -> torch.Tensor:
    """Return the tensor under the wrappers of ``torch.func`` transforms."""
    if _functorch is None or not hasattr(_functorch, "is_functorch_wrapped_tensor"):
        return tensor
    for _ in range(16):
        if not _functorch.is_functorch_wrapped_tensor(tensor):
            break
        tensor = _functorch.get_unwrapped(tensor)
    return tensor


def is_fake(tensor: Any) -> bool:
    """Return True for a placeholder of the compile stack (fake, functional, proxy), which has no elements."""
    name = type(tensor).__name__
    return name in ("FakeTensor", "FunctionalTensor", "ProxyTensor", "PythonKeyTracer") or (
        isinstance(tensor, _Tensor) and bool(torch._is_functional_tensor(tensor))
    )


def read_metadata(tensor: torch.Tensor, meta: Dict[str, Any]) -> None:
    """Add the tensor's metadata to ``meta``; a fake tensor adds nothing."""
    if is_fake(tensor):
        return
    meta["dtype"] = str(tensor.dtype)
    meta["device"] = str(tensor.device)
    meta["layout"] = str(tensor.layout)
    meta["requires_grad"] = bool(_requires_grad(tensor))
    meta["leaf"] = bool(_is_leaf(tensor))
    meta["shape"] = [int(size) for size in tensor.shape]
    if tensor.layout is torch.strided and not tensor.is_nested:
        meta["stride"] = [int(step) for step in tensor.stride()]
        formats = {4: torch.channels_last, 5: torch.channels_last_3d}
        meta["contiguous"] = bool(tensor.is_contiguous())
        if tensor.dim() in formats:
            meta["channels_last"] = bool(tensor.is_contiguous(memory_format=formats[tensor.dim()]))
    try:
        meta["version"] = int(tensor._version)
    except RuntimeError:
        pass  # tensors created in inference mode have no version counter


def storage_key(tensor: torch.Tensor) -> Optional[int]:
    """Return a number that is equal for tensors that share memory; ``None`` for a tensor without storage."""
    try:
        storage = tensor.untyped_storage()
        return int(storage._cdata) if storage.nbytes() else None
    except (RuntimeError, NotImplementedError, AttributeError):
        return None


def dense_on_cpu(tensor: torch.Tensor) -> Optional[torch.Tensor]:
    """Return the elements as a plain strided tensor on the CPU; ``None`` if they cannot be read."""
    if tensor.device.type == "meta" or tensor.is_nested:
        return None
    try:
        plain = _detach(tensor)
        if type(plain) is not _Tensor:
            plain = _as_subclass(plain, _Tensor)
        if plain.layout is not torch.strided:
            plain = _to_dense(plain)
        if plain.is_quantized:
            plain = plain.dequantize()
        plain = _resolve_neg(_resolve_conj(_cpu(plain)))
        if plain.numel() and not plain.data_ptr():
            return None
    except (RuntimeError, NotImplementedError, TypeError):
        return None
    return plain


def read_grad(tensor: torch.Tensor) -> Optional[torch.Tensor]:
    """Return ``.grad`` of a tensor that can have one; reading it elsewhere would raise a warning."""
    try:
        if _is_leaf(tensor) or tensor.retains_grad:
            return _grad(tensor)
    except (RuntimeError, AttributeError):
        pass
    return None
