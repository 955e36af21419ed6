"""Replace ``torch.compile`` for one run: compile with changed settings, or not at all; record the calls in both cases.

The hook replaces every entry point of the compiler: ``torch.compile`` in all its forms (``Module.compile`` calls it
too), ``torch._dynamo.optimize``, and the context managers of compiled autograd. It is installed before the script's
first line, so a script that imports one of these under another name also gets the replacement.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import itertools
import threading
import types
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Set, Tuple, cast

import torch
import torch._dynamo

from ..capture.recording import Recorder, disable_compile, is_compiling, skip_frame
from .script_backends import functions_of_backend

COMPILED_AUTOGRAD_FLAG = "compiled_autograd"
_PRECOMPILE = "cpp_cache_precompile_headers"
_TENSOR_HOOKS = ("register_hook", "register_post_accumulate_grad_hook")
_MODULE_HOOKS = ("forward_hook", "forward_pre_hook", "full_backward_hook", "full_backward_pre_hook", "backward_hook")


class CompileHook:
    """The replacement of the compiler's entry points in this process, installed once.

    Args:
        recorder: records every call of a compiled callable.
        settings: ``repro.Settings`` as JSON; a setting that is ``None`` is left to the script. ``draws`` is False if no
            compiled call draws a random number in eager, so that inductor need not draw its own as eager does.
        compiles: False turns compilation off.

    Attributes:
        notes: remarks for the reader of the report.
        backends: the names of the backends that the script itself asks for.
        options: the options of each ``torch.compile`` call as the script wrote them, by the number of the site.
        unwrapped: the number of modules that the wrapper of ``torch.compile`` refused, as a compiled run will.
    """

    def __init__(self, recorder: Recorder, settings: Dict[str, Any], compiles: bool) -> None:
        self.notes: List[str] = []
        self.backends: Set[str] = set()
        self.options: Dict[int, Dict[str, Any]] = {}
        self.unwrapped = 0
        self._recorder = recorder
        self._settings = settings
        self._compiles = compiles
        self._real_compile = torch.compile
        self._real_optimize = torch._dynamo.optimize
        self._local = threading.local()
        self._sites = itertools.count()
        self._forced_flags: List[Tuple[Any, str, Any]] = []
        self._own_backends: Dict[int, Any] = {}

    def install(self) -> None:
        """Replace the entry points and set the compiler flags."""
        if self._compiles:
            self._collect_flags()
            self._set_flags()
        torch.compile = _replacement(self._real_compile, self._compile)
        torch._dynamo.optimize = _replacement(self._real_optimize, self._optimize)
        self._replace_compiled_autograd()

    def _collect_flags(self) -> None:
        flags = [(name, value) for name, value in self._settings.get("knobs") or ()]
        if self._settings.get("draws", True):
            flags.insert(0, ("_inductor.config.fallback_random", True))
        if self._settings.get("compiled_autograd") is not None:
            flags.append(("_dynamo.config." + COMPILED_AUTOGRAD_FLAG, self._settings["compiled_autograd"]))
        for name, value in flags:
            path, _, flag = name.rpartition(".")
            owner = _torch_attribute(path)
            if owner is None or not hasattr(owner, flag):
                self.notes.append("this torch has no torch.{}".format(name))
            else:
                self._forced_flags.append((owner, flag, value))
        inductor = _torch_attribute("_inductor.config")
        if any(name.startswith("_inductor.config.cpp.") for name, _ in flags) and hasattr(inductor, _PRECOMPILE):
            # Other options of g++ need other precompiled headers, which take longer than a few kernels without them.
            self._forced_flags.append((inductor, _PRECOMPILE, False))

    def _set_flags(self) -> None:
        """Set the flags to the values of the settings, even if the script has changed them."""
        for owner, name, value in self._forced_flags:
            if getattr(owner, name) != value:
                setattr(owner, name, value)

    def _with_settings(self, options: Dict[str, Any]) -> Dict[str, Any]:
        """Return the options of a ``torch.compile`` call, overridden by the settings."""
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

    def _compile(self, model: Any = None, *args: Any, **options: Any) -> Any:
        """Replace ``torch.compile``."""
        if model is None:
            return lambda function: self._compile(function, *args, **options)
        if options.get("disable") or self.is_in_torch:
            return self._real_compile(model, *args, **options)
        self._note_backend(options)
        if self._compiles:
            with self.in_torch():
                compiled = self._real_compile(model, *args, **self._with_settings(options))
        else:
            try:
                compiled = self.uncompiled(model)
            except Exception:
                self.unwrapped += 1
                return model
        if isinstance(model, type) or (isinstance(model, torch.fx.GraphModule) and self._in_compiled_autograd()):
            return compiled
        return self.recorded(model, compiled, options)

    def _note_backend(self, options: Dict[str, Any]) -> None:
        backend = options.get("backend", "inductor")
        self.backends.add(backend if isinstance(backend, str) else "custom")
        if not isinstance(backend, str) and id(backend) not in self._own_backends:
            self._own_backends[id(backend)] = backend  # kept alive, so that no other one gets its ``id``
            for function in functions_of_backend(backend):
                self._recorder.add_backend(function)

    def uncompiled(self, model: Any) -> Any:
        """Return the model, not compiled; a module is put in the wrapper that ``torch.compile`` would return."""
        if isinstance(model, torch.nn.Module):
            with self.in_torch():
                return torch._dynamo.eval_frame.OptimizedModule(model, cast(Any, _identity))
        return model

    def _optimize(self, *args: Any, **options: Any) -> Any:
        """Replace ``torch._dynamo.optimize``."""
        if self.is_in_torch or options.get("disable"):
            return self._real_optimize(*args, **options)
        given = {**dict(zip(("backend", "nopython"), args)), **options}
        self._note_backend(given)
        if self._compiles:
            forced = {name: self._settings.get(name) for name in ("backend", "dynamic")}
            given.update((name, value) for name, value in forced.items() if value is not None)
            real = self._real_optimize(**given)
            return _OptimizeContext(real, lambda model: self.recorded(model, real(model), given))
        return _OptimizeContext(None, lambda model: self.recorded(model, self.uncompiled(model), given))

    def recorded(self, model: Any, compiled: Any, options: Dict[str, Any]) -> Any:
        """Return the compiled callable, changed to record its calls as calls of ``model``."""
        if isinstance(model, types.FunctionType):
            model = getattr(model, "_torchbisect_target", model)
        site, label = next(self._sites), _label(model)
        self.options[site] = options
        if isinstance(compiled, torch.nn.Module):
            inner = compiled.__dict__.get("forward", compiled.forward)
            compiled.__dict__["forward"] = self._recording(site, label, model, inner)
            return compiled
        recording = self._recording(site, label, model, compiled)
        with contextlib.suppress(AttributeError, TypeError):
            functools.update_wrapper(recording, model)
        # When dynamo traces a call of this function in another compiled one, it inlines this original instead.
        if self._compiles:
            recording._torchdynamo_inline = model
        recording._torchbisect_target = model
        # As on a compiled function: compiling or disabling it again starts from the original.
        recording._torchdynamo_orig_callable = model
        recording._torchdynamo_wrapper_id = id(recording)
        return recording

    def _recording(self, site: int, label: str, model: Any, call: Callable[..., Any]) -> Any:
        recorder, set_flags = self._recorder, disable_compile(self._set_flags)

        def recording(*args: Any, **kwargs: Any) -> Any:
            set_flags()
            return recorder.call(site, label, model, call, args, kwargs)

        return skip_frame(recording)

    @property
    def is_in_torch(self) -> bool:
        """True in a call of torch's own code."""
        return bool(getattr(self._local, "in_torch", False))

    @contextlib.contextmanager
    def in_torch(self) -> Iterator[None]:
        """Mark a call of torch's own code, which uses the entry points itself."""
        before = getattr(self._local, "in_torch", False)
        self._local.in_torch = True
        try:
            yield
        finally:
            self._local.in_torch = before

    # Compiled autograd ----------------------------------------------------------------------------------------------

    def _in_compiled_autograd(self) -> bool:
        return bool(getattr(self._local, "compiled_autograd", 0))

    def _replace_compiled_autograd(self) -> None:
        try:
            import torch._dynamo.compiled_autograd as module
        except ImportError:
            return
        for name in ("enable", "_enable"):
            real = getattr(module, name, None)
            if callable(real):
                setattr(module, name, self._compiled_autograd_context(real))
        if not self._compiles and hasattr(torch._dynamo.config, COMPILED_AUTOGRAD_FLAG):
            torch._dynamo.config.compiled_autograd = False

    def _compiled_autograd_context(self, real: Callable[..., Any]) -> Callable[..., Any]:
        """Return a context manager that enables compiled autograd only if the settings allow it."""
        allowed = self._compiles and self._settings.get("compiled_autograd") is not False

        @functools.wraps(real)
        @contextlib.contextmanager
        def context(*args: Any, **kwargs: Any) -> Iterator[Any]:
            self._recorder.compiled_sites.add(-1)
            if not (allowed or self.is_in_torch):
                yield None
                return
            self._local.compiled_autograd = getattr(self._local, "compiled_autograd", 0) + 1
            try:
                with real(*args, **kwargs) as held:
                    yield held
            finally:
                self._local.compiled_autograd -= 1

        return context


def _replacement(real: Any, function: Callable[..., Any]) -> Any:
    """Return a plain function that calls ``function`` and has the name and the signature of ``real``."""

    @functools.wraps(real)
    def replacement(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return skip_frame(replacement)


def _identity(function: Any) -> Any:
    return function


class _OptimizeContext:
    """The result of ``torch._dynamo.optimize(...)``: a decorator, and in older releases also a context manager."""

    def __init__(self, real: Any, decorate: Callable[[Any], Any]) -> None:
        self._real = real
        self._decorate = decorate

    def __call__(self, model: Any) -> Any:
        return self._decorate(model)

    def __enter__(self) -> Any:
        return self._real.__enter__() if self._real is not None else None

    def __exit__(self, *error: Any) -> Any:
        return self._real.__exit__(*error) if self._real is not None else None


def _torch_attribute(name: str) -> Optional[Any]:
    """Return the object at a dotted path under torch, importing the modules on the path; ``None`` if there is none."""
    owner: Any = torch
    path = "torch"
    for part in name.split("."):
        path += "." + part
        if not hasattr(owner, part):
            with contextlib.suppress(ImportError):
                importlib.import_module(path)
        owner = getattr(owner, part, None)
        if owner is None:
            return None
    return owner


def _label(model: Any) -> str:
    name = getattr(model, "__qualname__", None) or getattr(model, "__name__", None)
    return str(name) if name else type(model).__qualname__


def watch_autograd(recorder: Recorder) -> None:
    """Record every run of the autograd engine that Python starts."""
    graph: Any = torch.autograd.graph
    autograd: Any = torch.autograd
    run = getattr(graph, "_engine_run_backward", None)
    if run is not None:

        @functools.wraps(run)
        def recorded(*args: Any, **kwargs: Any) -> Any:
            return _recorded_run(recorder, run, args, kwargs)

        graph._engine_run_backward = autograd._engine_run_backward = skip_frame(recorded)
        return
    # Up to torch 2.2 the engine's method is called directly.
    autograd.Variable._execution_engine = _RecordedEngine(autograd.Variable._execution_engine, recorder)


@skip_frame
def _recorded_run(recorder: Recorder, run: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Run the autograd engine, and record its results or its exception."""
    try:
        results = run(*args, **kwargs)
    except Exception as error:
        recorder.record_backward((), error)
        raise
    recorder.record_backward(results)
    return results


class _RecordedEngine:
    """The autograd engine of torch up to 2.2, with its runs recorded."""

    def __init__(self, engine: Any, recorder: Recorder) -> None:
        self._engine = engine
        self._recorder = recorder

    @skip_frame
    def run_backward(self, *args: Any, **kwargs: Any) -> Any:
        return _recorded_run(self._recorder, self._engine.run_backward, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)


def watch_hooks(recorder: Recorder) -> None:
    """Report every function that the script registers as a hook. The hooks themselves stay unchanged."""
    registrations: Tuple[Tuple[Any, Sequence[str]], ...] = (
        (torch.Tensor, _TENSOR_HOOKS),
        (torch.nn.Module, ["register_" + name for name in _MODULE_HOOKS]),
        (torch.nn.modules.module, ["register_module_" + name for name in _MODULE_HOOKS]),
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
        if not is_compiling():
            for argument in (*args, *kwargs.values()):
                if callable(argument) and not isinstance(argument, torch.nn.Module):
                    recorder.add_hook(argument)
        return handle

    return skip_frame(reported)
