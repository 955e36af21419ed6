"""Compile a small function in the agent before it forks, so that its children need not pay for the first compile.

Imports alone are not enough, because the first compile of a process fills many caches. The agent must not do three
things here. It must not run an operator on more than one thread: a child forked after that hangs in its first parallel
operator. It must not run backward in a build with CUDA: that initializes CUDA where there is a GPU, and from torch 2.10
on, its children are refused autograd everywhere. And it must not initialize CUDA; see ``hidden_gpu``.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import os
import tempfile
from typing import Set

import torch
import torch._dynamo

from . import compiler_cache
from .hidden_gpu import HiddenGpu

PREWARM_SECONDS = 120.0
BACKENDS = ("eager", "aot_eager", "inductor")  # each uses the parts of the compile stack before it


_CPP_GUARDS = "enable_cpp_symbolic_shape_guards"


def _small_function(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    # For a function of torch, which most scripts call, dynamo imports torch.distributed.tensor since torch 2.11.
    return torch.sin(x * y) + y


def _must_not_trace_backward(gpus: int) -> bool:
    """Return True if tracing a backward in this process would keep its children from running one."""
    numbers = torch.__version__.split(".")[:2]
    return gpus > 0 or (torch.version.cuda is not None and [int(number) for number in numbers] >= [2, 10])


def _compiles_guards() -> bool:
    """Return True if dynamo compiles the guards of symbolic sizes in C++, for which it asks inductor (torch 2.9.0).

    With any backend that needs the instruction sets that work; see ``compiler_cache``.
    """
    return bool(getattr(torch._dynamo.config, _CPP_GUARDS, False))


def first_compile_is_slow(backend: str) -> bool:
    """Return True if a script that is compiled once takes longer without ``Prewarmer.prewarm`` than with it."""
    return backend == "inductor" or _compiles_guards()


def remember_files_of_modules() -> None:
    """Have ``inspect`` look up the file of every module now, as each child's first compile would: 0.1 s for 2,000."""
    with contextlib.suppress(Exception):
        inspect.getmodule(compile("", "<no file of a module>", "exec"))


class Prewarmer:
    """The first compile with each backend, made at most once in this process."""

    def __init__(self, folder: str, kept: str = "") -> None:
        """Begin with nothing compiled.

        ``folder`` is for temporary files; ``kept`` is the folder that ``compiler_cache`` keeps, empty for none.
        """
        self._done: Set[str] = set()
        self._folder = folder
        self._kept = kept
        # Dynamo profiles the guards of every compile for a log, after flushing the CPU caches: 50 ms a compile.
        guards = getattr(torch._dynamo, "guards", None)
        if hasattr(guards, "profile_guard_manager"):
            guards.profile_guard_manager = lambda *_: 0.0  # type: ignore[union-attr]

        # Torch 2.0 ignores the environment variable for this. Inductor then starts a pool of processes on import, and
        # a child forked beside that pool waits for it forever.
        with contextlib.suppress(ImportError):
            import torch._inductor.config as inductor

            inductor.compile_threads = 1

    def prewarm(self, backend: str) -> bool:
        """Compile with every backend up to this one, at least ``aot_eager``; return False if all was done before.

        Errors are ignored, because the children meet and report them too.
        """
        last = max(1, BACKENDS.index(backend)) if backend in BACKENDS else 1
        missing = [name for name in BACKENDS[: last + 1] if name not in self._done]
        if not missing:
            return False
        self._use_new_folders()
        with HiddenGpu() as hidden:
            for name in missing:
                self._done.add(name)
                with contextlib.suppress(Exception), contextlib.redirect_stderr(io.StringIO()):
                    if name == "inductor" or (name == "aot_eager" and _compiles_guards()):
                        compiler_cache.install(self._kept, os.environ["TORCHINDUCTOR_CACHE_DIR"])
                    self._compile(name, hidden.number)
                    if name == "inductor":
                        compiler_cache.keep_headers(self._kept)
                torch._dynamo.reset()
        remember_files_of_modules()
        tempfile.tempdir = self._folder
        return True

    def _use_new_folders(self) -> None:
        """Have torch keep its caches in new folders: what it finds there it loads, and scripts may have run before."""
        # The folder of precompiled headers is chosen once, below that of temporary files.
        tempfile.tempdir = tempfile.mkdtemp(prefix="prewarm-", dir=self._folder)
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = os.path.join(tempfile.tempdir, "inductor")
        os.environ["TRITON_CACHE_DIR"] = os.path.join(tempfile.tempdir, "triton")

    def _compile(self, backend: str, gpus: int) -> None:
        torch._dynamo.reset()
        x = torch.ones(4, requires_grad=backend != "inductor" and not _must_not_trace_backward(gpus))
        # The guard of this small function would take a C++ compiler a second, and serve no other function.
        with torch._dynamo.config.patch(_CPP_GUARDS, False) if _compiles_guards() else contextlib.nullcontext():
            # Symbolic sizes import sympy, which is slow.
            torch.compile(_small_function, backend=backend, dynamic=backend == "aot_eager")(x, torch.ones(4))
