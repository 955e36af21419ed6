"""``torch.compile`` as one run sees it: honoured with other settings, or a no-op; recorded in both.

What is replaced are the ways in: ``torch.compile`` in all its forms (``Module.compile`` calls it too),
``torch._dynamo.optimize``, and compiled autograd's context managers. A script that binds one of these under a name of
its own gets the replacement, because it is in place before the script's first line.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import threading
import types
from typing import Any, Callable, Dict, Iterator, List, Optional, Set, Tuple, cast

import torch
import torch._dynamo

from ..capture.recording import Recorder
from . import dynamo_skip

CA_FLAG = "compiled_autograd"


class Compiling:
    """Replaces the ways into the compiler in this process, once.

    Args:
        recorder: hears of every call of a compiled callable.
        settings: ``repro.Settings`` as JSON; what is ``None`` is left to the script.
        honoured: whether anything is compiled at all.
    """

    def __init__(self, recorder: Recorder, settings: Dict[str, Any], honoured: bool) -> None:
        self.notes: List[str] = []
        self.backends: Set[str] = set()
        self._recorder = recorder
        self._settings = settings
        self._honoured = honoured
        self._compile = torch.compile
        self._optimize = torch._dynamo.optimize
        self._local = threading.local()
        self._sites = itertools.count()
        self._forced: List[Tuple[Any, str, Any]] = []

    def install(self) -> None:
        """Put the replacements in place and the knobs on their values."""
        if self._honoured:
            self._collect_knobs()
            self._force()
        torch.compile = _standing_in(self._compile, self._replaced_compile)
        torch._dynamo.optimize = _standing_in(self._optimize, self._replaced_optimize)
        self._replace_compiled_autograd()
        watch_autograd(self._recorder)
        watch_hooks(self._recorder)

    # Settings -------------------------------------------------------------------------------------------------------

    def _collect_knobs(self) -> None:
        knobs = [("_inductor.config.fallback_random", True)]
        knobs += [(name, value) for name, value in self._settings.get("knobs") or ()]
        if self._settings.get("compiled_autograd") is not None:
            knobs.append(("_dynamo.config." + CA_FLAG, self._settings["compiled_autograd"]))
        for name, value in knobs:
            holder, _, last = name.rpartition(".")
            owner = _dotted(holder)
            if owner is None or not hasattr(owner, last):
                self.notes.append("this torch has no torch.{}".format(name))
            else:
                self._forced.append((owner, last, value))

    def _force(self) -> None:
        """Set the knobs again: a script may have set them otherwise since."""
        for owner, name, value in self._forced:
            if getattr(owner, name) != value:
                setattr(owner, name, value)

    def _overridden(self, options: Dict[str, Any]) -> Dict[str, Any]:
        options = dict(options)
        backend, mode = self._settings.get("backend"), self._settings.get("mode")
        if backend is not None:
            options["backend"] = backend
            if backend != "inductor":
                options.pop("mode", None)
                options.pop("options", None)
        if mode is not None and options.get("backend", "inductor") == "inductor":
            options["mode"] = None if mode == "default" else mode
            options.pop("options", None)
        if self._settings.get("dynamic") is not None:
            options["dynamic"] = self._settings["dynamic"]
        return options

    # torch.compile --------------------------------------------------------------------------------------------------

    def _replaced_compile(self, model: Any = None, *args: Any, **options: Any) -> Any:
        if model is None:
            return lambda function: self._replaced_compile(function, *args, **options)
        if options.get("disable") or getattr(self._local, "busy", False):
            return self._compile(model, *args, **options)
        self.backends.add(_backend_name(options.get("backend", "inductor")))
        if self._honoured:
            with self._busy():
                compiled = self._compile(model, *args, **self._overridden(options))
        else:
            compiled = self._unchanged(model)
        if isinstance(model, type) or (isinstance(model, torch.fx.GraphModule) and self._in_compiled_autograd()):
            return compiled
        return self._recorded(model, compiled)

    def _unchanged(self, model: Any) -> Any:
        """The model, not compiled, in the wrapper that compiling a module puts round it."""
        if isinstance(model, torch.nn.Module):
            with self._busy():
                return torch._dynamo.eval_frame.OptimizedModule(model, cast(Any, _as_it_is))
        return model

    def _replaced_optimize(self, *args: Any, **options: Any) -> Any:
        if getattr(self._local, "busy", False) or options.get("disable"):
            return self._optimize(*args, **options)
        given = {**dict(zip(("backend", "nopython"), args)), **options}
        self.backends.add(_backend_name(given.get("backend", "inductor")))
        if self._honoured:
            backend = self._settings.get("backend")
            if backend is not None:
                given["backend"] = backend
            if self._settings.get("dynamic") is not None:
                given["dynamic"] = self._settings["dynamic"]
            real = self._optimize(**given)
            return _Optimizer(real, lambda model: self._recorded(model, real(model)))
        return _Optimizer(None, lambda model: self._recorded(model, self._unchanged(model)))

    def _recorded(self, model: Any, compiled: Any) -> Any:
        if isinstance(model, types.FunctionType):
            model = getattr(model, "_torchbisect_target", model)
        site, label = next(self._sites), _label(model)
        if isinstance(compiled, torch.nn.Module):
            inner = compiled.__dict__.get("forward", compiled.forward)
            compiled.__dict__["forward"] = self._crossing(site, label, model, inner)
            return compiled
        crossing = self._crossing(site, label, model, compiled)
        with contextlib.suppress(AttributeError, TypeError):
            functools.update_wrapper(crossing, model)
        # Dynamo, tracing a compiled function into another one, takes the original from here and never sees this
        # wrapper.
        if self._honoured:
            crossing._torchdynamo_inline = model
        crossing._torchbisect_target = model
        # As on a compiled function: compiling or disabling it again starts from the original.
        crossing._torchdynamo_orig_callable = model
        crossing._torchdynamo_wrapper_id = id(crossing)
        return crossing

    def _crossing(self, site: int, label: str, model: Any, call: Callable[..., Any]) -> Any:
        recorder, force = self._recorder, dynamo_skip.apart(self._force)

        def crossing(*args: Any, **kwargs: Any) -> Any:
            force()
            return recorder.cross(site, label, model, call, args, kwargs)

        return dynamo_skip.frame(crossing)

    @contextlib.contextmanager
    def _busy(self) -> Iterator[None]:
        """Inside torch's own code, which calls the ways in as well."""
        before = getattr(self._local, "busy", False)
        self._local.busy = True
        try:
            yield
        finally:
            self._local.busy = before

    # Compiled autograd ----------------------------------------------------------------------------------------------

    def _in_compiled_autograd(self) -> bool:
        return bool(getattr(self._local, "autograd", 0))

    def _replace_compiled_autograd(self) -> None:
        try:
            import torch._dynamo.compiled_autograd as module
        except ImportError:
            return
        for name in ("enable", "_enable"):
            real = getattr(module, name, None)
            if callable(real):
                setattr(module, name, self._enabling(real))
        if not self._honoured and hasattr(torch._dynamo.config, CA_FLAG):
            torch._dynamo.config.compiled_autograd = False

    def _enabling(self, real: Callable[..., Any]) -> Callable[..., Any]:
        allowed = self._honoured and self._settings.get("compiled_autograd") is not False

        @functools.wraps(real)
        @contextlib.contextmanager
        def enabling(*args: Any, **kwargs: Any) -> Iterator[Any]:
            if not (allowed or getattr(self._local, "busy", False)):
                self._recorder.compiled.add(-1)
                yield None
                return
            self._recorder.compiled.add(-1)
            self._local.autograd = getattr(self._local, "autograd", 0) + 1
            try:
                with real(*args, **kwargs) as held:
                    yield held
            finally:
                self._local.autograd -= 1

        return enabling


def _standing_in(real: Any, replacement: Callable[..., Any]) -> Any:
    """A plain function with the name and the signature of the one it replaces."""

    @functools.wraps(real)
    def function(*args: Any, **kwargs: Any) -> Any:
        return replacement(*args, **kwargs)

    return dynamo_skip.frame(function)


def _as_it_is(function: Any) -> Any:
    return function


class _Optimizer:
    """What ``torch._dynamo.optimize(...)`` returns: a decorator, and in older releases a context manager as well."""

    def __init__(self, real: Any, decorate: Callable[[Any], Any]) -> None:
        self._real = real
        self._decorate = decorate

    def __call__(self, model: Any) -> Any:
        return self._decorate(model)

    def __enter__(self) -> Any:
        return self._real.__enter__() if self._real is not None else None

    def __exit__(self, *error: Any) -> Any:
        return self._real.__exit__(*error) if self._real is not None else None


def _dotted(name: str) -> Optional[Any]:
    """The object at a dotted path under torch, its modules imported on the way."""
    import importlib

    owner: Any = torch
    path = "torch"
    for part in name.split("."):
        path += "." + part
        if not hasattr(owner, part):
            try:
                importlib.import_module(path)
            except ImportError:
                return None
        owner = getattr(owner, part, None)
        if owner is None:
            return None
    return owner


def _backend_name(backend: Any) -> str:
    return backend if isinstance(backend, str) else "custom"


def _label(model: Any) -> str:
    name = getattr(model, "__qualname__", None) or getattr(model, "__name__", None)
    return str(name) if name else type(model).__qualname__


def watch_autograd(recorder: Recorder) -> None:
    """Let the recorder hear of every run of the autograd engine that Python starts."""
    graph: Any = torch.autograd.graph
    autograd: Any = torch.autograd
    run = getattr(graph, "_engine_run_backward", None)
    if run is not None:

        @functools.wraps(run)
        def watched(*args: Any, **kwargs: Any) -> Any:
            results = run(*args, **kwargs)
            recorder.backward(results)
            return results

        dynamo_skip.frame(watched)
        graph._engine_run_backward = watched
        autograd._engine_run_backward = watched
        return
    # Up to 2.2 the engine's method is called directly.
    autograd.Variable._execution_engine = _Engine(autograd.Variable._execution_engine, recorder)


class _Engine:
    def __init__(self, real: Any, recorder: Recorder) -> None:
        self._real = real
        self._recorder = recorder

    @dynamo_skip.frame
    def run_backward(self, *args: Any, **kwargs: Any) -> Any:
        results = self._real.run_backward(*args, **kwargs)
        self._recorder.backward(results)
        return results

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


_TENSOR_HOOKS = ("register_hook", "register_post_accumulate_grad_hook")
_MODULE_HOOKS = (
    "register_forward_hook",
    "register_forward_pre_hook",
    "register_full_backward_hook",
    "register_full_backward_pre_hook",
    "register_backward_hook",
)
_EVERY_MODULES_HOOKS = tuple(name.replace("register_", "register_module_") for name in _MODULE_HOOKS)


def watch_hooks(recorder: Recorder) -> None:
    """Let the recorder hear of functions that the script registers as hooks. The hooks themselves stay as they are."""
    ways = (
        (torch.Tensor, _TENSOR_HOOKS),
        (torch.nn.Module, _MODULE_HOOKS),
        (torch.nn.modules.module, _EVERY_MODULES_HOOKS),
        (torch.autograd.graph, ("register_multi_grad_hook",)),
    )
    for owner, names in ways:
        for name in names:
            real = getattr(owner, name, None)
            if isinstance(real, types.FunctionType):
                setattr(owner, name, _registering(real, recorder))


def _registering(real: Any, recorder: Recorder) -> Any:
    @functools.wraps(real)
    def register(*args: Any, **kwargs: Any) -> Any:
        handle = real(*args, **kwargs)
        if not dynamo_skip.is_compiling():
            for given in (*args, *kwargs.values()):
                if callable(given) and not isinstance(given, torch.nn.Module):
                    recorder.hook(given)
        return handle

    return dynamo_skip.frame(register)
