"""Report each run of the autograd engine, and each hook that the script registers, to the recorder."""

from __future__ import annotations

import functools
import types
from typing import Any

import torch
import torch._dynamo

from ..capture import dynamo_skip
from ..capture.recording import Recorder

_TENSOR_HOOKS = ("register_hook", "register_post_accumulate_grad_hook")
_MODULE_HOOKS = (
    "register_forward_hook",
    "register_forward_pre_hook",
    "register_full_backward_hook",
    "register_full_backward_pre_hook",
    "register_backward_hook",
)
_GLOBAL_MODULE_HOOKS = tuple(name.replace("register_", "register_module_") for name in _MODULE_HOOKS)


def watch_autograd(recorder: Recorder) -> None:
    """Record every run of the autograd engine that Python starts."""
    graph: Any = torch.autograd.graph
    autograd: Any = torch.autograd
    run = getattr(graph, "_engine_run_backward", None)
    if run is not None:

        @functools.wraps(run)
        def recorded(*args: Any, **kwargs: Any) -> Any:
            results = run(*args, **kwargs)
            recorder.record_backward(results)
            return results

        dynamo_skip.skip_frame(recorded)
        graph._engine_run_backward = recorded
        autograd._engine_run_backward = recorded
        return
    # Up to torch 2.2 the engine's method is called directly.
    autograd.Variable._execution_engine = _RecordedEngine(autograd.Variable._execution_engine, recorder)


class _RecordedEngine:
    """The autograd engine of torch up to 2.2, with its runs recorded."""

    def __init__(self, engine: Any, recorder: Recorder) -> None:
        self._engine = engine
        self._recorder = recorder

    @dynamo_skip.skip_frame
    def run_backward(self, *args: Any, **kwargs: Any) -> Any:
        results = self._engine.run_backward(*args, **kwargs)
        self._recorder.record_backward(results)
        return results

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)


def watch_hooks(recorder: Recorder) -> None:
    """Report every function that the script registers as a hook. The hooks themselves stay unchanged."""
    registrations = (
        (torch.Tensor, _TENSOR_HOOKS),
        (torch.nn.Module, _MODULE_HOOKS),
        (torch.nn.modules.module, _GLOBAL_MODULE_HOOKS),
        (torch.autograd.graph, ("register_multi_grad_hook",)),
    )
    for owner, names in registrations:
        for name in names:
            register = getattr(owner, name, None)
            if isinstance(register, types.FunctionType):
                setattr(owner, name, _reporting(register, recorder))


def _reporting(register: Any, recorder: Recorder) -> Any:
    """Return the registration function, changed to report each function passed to it."""

    @functools.wraps(register)
    def reported(*args: Any, **kwargs: Any) -> Any:
        handle = register(*args, **kwargs)
        if not dynamo_skip.is_compiling():
            for argument in (*args, *kwargs.values()):
                if callable(argument) and not isinstance(argument, torch.nn.Module):
                    recorder.add_hook(argument)
        return handle

    return dynamo_skip.skip_frame(reported)
