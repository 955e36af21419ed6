"""Replace the exporters of torch for one run: what they make is recorded like what ``torch.compile`` makes.

A call of ``torch.export.export(...).module()``, or of a model that AOTInductor compiled, is recorded as a call of the
module that was exported. In an eager run it is that module. With a lesser backend than inductor, AOTInductor gives back
what was exported.
"""

from __future__ import annotations

import functools
import os
import sys
import tempfile
from typing import Any, Callable, Dict, Optional, Tuple

import torch

from ..capture.recording import Recorder, skip_frame
from .compile_hook import CompileHook

_EXPORTERS = ("export", "export_for_training", "draft_export")
_OPTIONS: Dict[str, Any] = {}


class ExportHook:
    """The replacement of the exporters and of AOTInductor, installed once.

    Args:
        recorder: leaves out what is made here when it records the script's globals: it differs by its nature.
        hook: the replacement of ``torch.compile``, which numbers and records the calls.
        compiles: False turns exporting off.
        backend: the backend of the settings; ``None`` leaves the choice to the script.
    """

    def __init__(self, recorder: Recorder, hook: CompileHook, compiles: bool, backend: Optional[str]) -> None:
        self._leave_out = recorder.leave_out
        self._hook = hook
        self._compiles = compiles
        self._lowers = compiles and backend in (None, "inductor")
        self._targets: Dict[int, Tuple[Any, Any]] = {}  # by the id of a program or module, which is held
        # By the name of the file: the target and the saved program, or the target and what loads it uncompiled.
        self._saved: Dict[Any, Tuple[Any, Any]] = {}
        self._packages: Dict[Any, Tuple[Any, Optional[Callable[[], Any]]]] = {}

    def install(self) -> None:
        """Replace the entry points that this torch has."""
        export, inductor, private = map(sys.modules.get, ("torch.export", "torch._inductor", "torch._export"))
        for name in _EXPORTERS:
            self._replace(export, name, self._export)
        self._replace(export, "save", self._save)
        self._replace(export, "load", self._load)
        self._replace(inductor, "aot_compile", self._compile_package)
        self._replace(inductor, "aoti_compile_and_package", self._compile_package)
        self._replace(inductor, "aoti_load_package", self._load_package)
        self._replace(private, "aot_load", self._load_package)
        program = getattr(export, "ExportedProgram", None)
        self._replace(program, "module", self._module_of)
        self._replace(program, "run_decompositions", self._derived)

    def _replace(self, owner: Any, name: str, function: Callable[..., Any]) -> None:
        real = getattr(owner, name, None)
        if not callable(real):
            return

        @functools.wraps(real)
        def replacement(*args: Any, **kwargs: Any) -> Any:
            if self._hook.is_in_torch:
                return real(*args, **kwargs)
            return function(real, *args, **kwargs)

        setattr(owner, name, skip_frame(replacement))

    def _keep(self, made: Any, target: Any) -> Any:
        self._targets[id(made)] = (made, target)
        self._leave_out(made)
        return made

    def _target(self, made: Any) -> Any:
        return self._targets.get(id(made), (None, None))[1]

    def _real(self, real: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        with self._hook.in_torch():
            return real(*args, **kwargs)

    def _export(self, real: Callable[..., Any], mod: Any, *args: Any, **kwargs: Any) -> Any:
        if self._compiles:
            return self._keep(self._real(real, mod, *args, **kwargs), mod)
        program = EagerProgram(mod, lambda: self._real(real, mod, *args, **kwargs), self._recorded)
        self._leave_out(program)
        return program

    def _recorded(self, target: Any, made: Any = None) -> Any:
        """Return what was made of a module, with its calls recorded as those of the module."""
        made = self._hook.uncompiled(target) if made is None else made
        return self._keep(self._hook.recorded(target, made, _OPTIONS), target)

    def _module_of(self, real: Callable[..., Any], program: Any, *args: Any, **kwargs: Any) -> Any:
        target = self._target(program)
        made = self._real(real, program, *args, **kwargs)
        return made if target is None else self._recorded(target, made)

    def _derived(self, real: Callable[..., Any], program: Any, *args: Any, **kwargs: Any) -> Any:
        made = self._real(real, program, *args, **kwargs)
        target = self._target(program)
        return made if target is None else self._keep(made, target)

    def _save(self, real: Callable[..., Any], program: Any, file: Any, *args: Any, **kwargs: Any) -> Any:
        target, whole = self._parts(program)
        self._saved[_key(file)] = (target, program)
        return self._real(real, whole, file, *args, **kwargs)

    def _load(self, real: Callable[..., Any], file: Any, *args: Any, **kwargs: Any) -> Any:
        target, program = self._saved.get(_key(file), (None, None))
        if isinstance(program, EagerProgram):
            return program
        made = self._real(real, file, *args, **kwargs)
        return made if target is None else self._keep(made, target)

    def _parts(self, program: Any) -> Tuple[Any, Any]:
        if isinstance(program, EagerProgram):
            return program.torchbisect_target, program.torchbisect_program
        return self._target(program), program

    def _compile_package(self, real: Callable[..., Any], program: Any, *args: Any, **kwargs: Any) -> Any:
        """Replace the two functions that compile a program into a file; return its name."""
        target = program.torchbisect_target if isinstance(program, EagerProgram) else self._target(program)
        load = None
        if target is None or self._lowers:
            path = self._real(real, program, *args, **kwargs)
        else:
            load = self._not_lowered(target, program)
            path = kwargs.get("package_path") or os.path.join(tempfile.mkdtemp(), "model.pt2")
            if isinstance(path, (str, os.PathLike)):
                with open(path, "wb"):
                    pass  # scripts look at what was written, or remove it
        if target is not None:
            self._packages[_key(path)] = (target, load)
            self._leave_out(path)
        return path

    def _not_lowered(self, target: Any, program: Any) -> Callable[[], Any]:
        """Return a function that loads what a program is before AOTInductor: the module, or what was exported of it."""
        if not self._compiles:
            load = _inference_loader(target)
        elif isinstance(program, torch.nn.Module):
            return _inference_loader(program)  # its calls are recorded already
        else:
            load = _inference_loader(self._real(type(program).module, program))
        return lambda: self._recorded(target, load())

    def _load_package(self, real: Callable[..., Any], path: Any, *args: Any, **kwargs: Any) -> Any:
        """Replace the two functions that load a compiled program."""
        target, load = self._packages.get(_key(path), (None, None))
        if load is not None:
            return load()
        made = self._real(real, path, *args, **kwargs)
        return made if target is None else self._recorded(target, made)


class EagerProgram:
    """The exported program of an eager run: its module is the module that was exported.

    Anything else about it is asked of the program that torch exports, then and not before.
    """

    def __init__(self, target: Any, export: Callable[[], Any], recorded: Callable[[Any], Any]) -> None:
        self.torchbisect_target = target
        self._torchbisect_export = export
        self._torchbisect_recorded = recorded

    @property
    def torchbisect_program(self) -> Any:
        """The program that torch exports."""
        if "_torchbisect_made" not in self.__dict__:
            self.__dict__["_torchbisect_made"] = self._torchbisect_export()
        return self.__dict__["_torchbisect_made"]

    def module(self, *args: Any, **kwargs: Any) -> Any:
        """Return the module that was exported."""
        return self._torchbisect_recorded(self.torchbisect_target)

    def run_decompositions(self, *args: Any, **kwargs: Any) -> EagerProgram:
        """Return the same: operators are not replaced in an eager run."""
        return self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_torchbisect"):
            raise AttributeError(name)
        return getattr(self.torchbisect_program, name)


def _inference_loader(module: torch.nn.Module) -> Callable[[], Callable[..., Any]]:
    """Return a function that loads a module as AOTInductor does: it computes no gradients, and has its own state."""
    state = {name: value.detach().clone() for name, value in [*module.named_parameters(), *module.named_buffers()]}

    def load() -> Callable[..., Any]:
        own = {name: value.clone() for name, value in state.items()}

        def call(*args: Any, **kwargs: Any) -> Any:
            with torch.no_grad():
                return torch.func.functional_call(module, own, args, kwargs)

        return call

    return load


def _key(file: Any) -> Any:
    """Return the key of a file: its real path, or what identifies a buffer."""
    if isinstance(file, (str, os.PathLike)):
        return os.path.realpath(file)
    return id(file)
