"""Copy a call, so that it can be made again as it was."""

from __future__ import annotations

import contextlib
import copy
import random
import sys
from collections.abc import Iterator
from typing import Any

import torch

from torchbisect.probe.agent.capture.reachable import call_inputs, tensors_in_value


def copied_call(target: Any, args: Any, kwargs: Any) -> tuple[Any, Any, Any]:
    """Return copies of what is called and of its arguments. A tensor within a graph becomes a leaf.

    Raises whatever the copy of a value raises.
    """
    memo: dict[int, Any] = {}
    for name, value in call_inputs(target, args, kwargs):
        for _, tensor in tensors_in_value(name, value):
            if tensor.grad_fn is not None:
                memo[id(tensor)] = tensor.detach().clone().requires_grad_()
    made: tuple[Any, Any, Any] = copy.deepcopy((target, args, kwargs), memo)
    return made


def versions(args: Any, kwargs: Any) -> list[int]:
    """Return the counters of the in-place changes of a call's tensors."""
    leaves = torch.utils._pytree.tree_flatten((args, kwargs))[0]
    return [leaf._version for leaf in leaves if isinstance(leaf, torch.Tensor) and not leaf.is_inference()]


@contextlib.contextmanager
def kept_generators() -> Iterator[None]:
    """Leave the random generators as they were."""
    state, numpy = random.getstate(), sys.modules.get("numpy")
    numpy_state = numpy.random.get_state() if numpy is not None else None
    try:
        with torch.random.fork_rng():
            yield
    finally:
        random.setstate(state)
        if numpy is not None:
            numpy.random.set_state(numpy_state)


def has_nan(output: Any) -> bool:
    """Return True if a tensor among the outputs has a NaN."""
    return any(bool(leaf.isnan().any()) for leaf in _tensors(output) if leaf.is_floating_point() or leaf.is_complex())


def may_differ(compiled: Any, eager: Any) -> bool:
    """Return True for outputs that differ by more than rounding may explain. It is no verdict."""
    ours, theirs = _tensors(compiled), _tensors(eager)
    if len(ours) != len(theirs):
        return True
    for one, other in zip(ours, theirs):
        if (one.shape, one.dtype, one.requires_grad) != (other.shape, other.dtype, other.requires_grad):
            return True
        if not torch.allclose(one.detach(), other.detach(), rtol=1e-2, atol=1e-3, equal_nan=True):
            return True
    return False


def _tensors(output: Any) -> list[torch.Tensor]:
    leaves = torch.utils._pytree.tree_flatten(output)[0]
    return [leaf for leaf in leaves if type(leaf) in (torch.Tensor, torch.nn.Parameter) and _is_plain(leaf)]


def _is_plain(tensor: torch.Tensor) -> bool:
    return tensor.layout is torch.strided and not tensor.is_quantized
