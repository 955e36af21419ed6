"""Prepare a child process for a script: limits, environment variables, streams, seeds and the ``__main__`` module."""

from __future__ import annotations

import atexit
import builtins
import contextlib
import ctypes
import gc
import importlib
import importlib.machinery
import io
import mmap
import os
import random
import resource
import signal
import sys
import tempfile
import time
import types
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence

import torch
import torch._dynamo

from . import compile_metrics

#: The blocks of each size that a perturbed process keeps.
_BLOCKS = 24
MALLOC_PERTURB = -6  # M_PERTURB of glibc's mallopt


def set_limits(memory: int, open_files: int) -> None:
    """Restore the default signal handlers, and limit the process.

    Args:
        memory: bytes of private memory that it may add to what it inherits; 0 for no limit.
        open_files: the number of descriptors that it may have.
    """
    for name in ("SIGINT", "SIGTERM", "SIGPIPE", "SIGHUP", "SIGALRM"):
        default = signal.default_int_handler if name == "SIGINT" else signal.SIG_DFL
        signal.signal(getattr(signal, name), default if name != "SIGPIPE" else signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    limits = [
        open_files if limit < 0 else min(limit, open_files) for limit in resource.getrlimit(resource.RLIMIT_NOFILE)
    ]
    resource.setrlimit(resource.RLIMIT_NOFILE, (limits[0], limits[1]))
    if memory:
        # RLIMIT_DATA and not RLIMIT_AS: a CUDA build maps tens of gigabytes of addresses that it never uses.
        limit = _data_size() + memory
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))


def _data_size() -> int:
    with open("/proc/self/status") as file:
        for line in file:
            if line.startswith("VmData:"):
                return int(line.split()[1]) * 1024
    return 0


# Modules that Python imports when it starts; a script's folder can't have others in their place.
_BEFORE_A_SCRIPT = """
abc codecs encodings genericpath importlib io os posixpath runpy site stat sys types zipimport
"""


def enter_folder(cwd: str, search: str, paths: Sequence[str] = ()) -> None:
    """Change to the working directory, and search a folder for modules first; no byte code is written there.

    ``paths`` are the folders of ``PYTHONPATH``, which processes of the script get too.
    """
    os.chdir(cwd)
    os.environ["PWD"] = cwd
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    sys.dont_write_bytecode = True
    if paths:
        os.environ["PYTHONPATH"] = os.pathsep.join(paths)
    sys.path[:] = [search, *paths, *(entry for entry in sys.path if entry)]
    _forget_modules_named_as_in(search)
    importlib.invalidate_caches()


def _forget_modules_named_as_in(search: str) -> None:
    """Forget the library's modules that one of the folder has the name of: under ``python`` that one is imported.

    The agent has imported them before. What Python imports before a script stays.
    """
    library = os.path.dirname(os.__file__)
    for entry in os.scandir(search) if os.path.isdir(search) else ():
        name, end = os.path.splitext(entry.name)
        module = sys.modules.get(name)
        is_one = end == ".py" or (not end and os.path.isfile(os.path.join(entry.path, "__init__.py")))
        if module is None or not is_one or name in _BEFORE_A_SCRIPT.split():
            continue
        place = getattr(module, "__file__", None) or ""
        if os.path.dirname(place) == library or os.path.dirname(os.path.dirname(place)) == library:
            for one in [one for one in sys.modules if one == name or one.startswith(name + ".")]:
                del sys.modules[one]


def set_environment(scratch: str, caches: str, threads: int) -> None:
    """Set the environment variables and reset the compiler's state; ``child.Job`` explains the arguments."""
    os.makedirs(caches, exist_ok=True)
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = os.path.join(caches, "inductor")
    os.environ["TRITON_CACHE_DIR"] = os.path.join(caches, "triton")
    os.environ["TMPDIR"] = scratch
    tempfile.tempdir = None
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
    os.environ.pop("TORCHDYNAMO_DISABLE", None)
    torch._dynamo.config.disable = False
    torch.set_num_threads(max(1, threads))
    torch._dynamo.reset()
    compile_metrics.reset()


def discard_inherited_state() -> None:
    """Clear the agent's exit handlers and turn on garbage collection."""
    atexit._clear()
    gc.enable()


class _EmptyInput(io.TextIOBase):
    """Standard input that is empty and notes each attempt to read it."""

    def __init__(self, reads: List[int]) -> None:
        self._reads = reads
        self.buffer = _EmptyBuffer(reads)

    def readable(self) -> bool:
        return True

    def fileno(self) -> int:
        return 0

    def read(self, size: Optional[int] = -1) -> str:
        self._reads.append(1)
        return ""

    def readline(self, size: int = -1) -> str:  # type: ignore[override]
        self._reads.append(1)
        return ""


class _EmptyBuffer(io.RawIOBase):
    def __init__(self, reads: List[int]) -> None:
        self._reads = reads

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._reads.append(1)
        return 0


def open_streams(typed_input: str = "") -> List[int]:
    """Open Python's standard streams on descriptors 0 to 2.

    ``typed_input`` is the file that is standard input. Without one it is empty, and the list that is returned grows
    with each read.
    """
    reads: List[int] = []
    if typed_input:
        with open(typed_input, "rb") as file:
            os.dup2(file.fileno(), 0)
        data = io.BufferedReader(io.FileIO(0, "rb", closefd=False))
        sys.stdin = sys.__stdin__ = io.TextIOWrapper(data, encoding="utf-8")  # type: ignore[misc]
    else:
        sys.stdin = sys.__stdin__ = _EmptyInput(reads)  # type: ignore[assignment,misc]
    sys.stdout = sys.__stdout__ = _text_output(1)  # type: ignore[misc]
    sys.stderr = sys.__stderr__ = _text_output(2)  # type: ignore[misc]
    return reads


def _text_output(number: int) -> io.TextIOWrapper:
    file = io.FileIO(number, "wb", closefd=False)
    return io.TextIOWrapper(file, encoding="utf-8", errors="backslashreplace", write_through=True)


def seed_generators(seed: int) -> None:
    """Seed the random number generators of Python, torch and, if it is installed, numpy."""
    random.seed(seed)
    torch.manual_seed(seed)
    with contextlib.suppress(ImportError):
        import numpy

        numpy.random.seed(seed % (1 << 32))


def perturb_process() -> None:
    """Change everything that may differ between two correct runs: fresh memory, the clock, addresses, modules."""
    builtins._torchbisect_kept = [*_small_blocks(), *_large_blocks()]  # type: ignore[attr-defined]
    # A compiled run imports more modules than an eager one.
    sys.modules["_torchbisect_kept"] = types.ModuleType("_torchbisect_kept")
    with contextlib.suppress(OSError, AttributeError):
        # Allocated memory is filled with the complement, 0x5A: large as a float, while 0xA5 would be nearly zero.
        ctypes.CDLL(None).mallopt(MALLOC_PERTURB, 0xA5)
    for name in ("time", "perf_counter", "monotonic", "process_time", "thread_time"):
        setattr(time, name, _accelerated(getattr(time, name)))


def _small_blocks() -> Iterator[Any]:
    """Yield objects that take the free blocks of each size, so that later ones of these sizes lie elsewhere.

    Forks of one process have the same free blocks, and so the same addresses. Python keeps blocks of each multiple of
    16 bytes up to 512: 16 are an object, 32 a complex number, and 33 what ``bytes`` needs beside its content.
    """
    yield from (object() for _ in range(4099))
    yield from (complex(number, 1) for number in range(_BLOCKS))
    for size in range(48, 1024, 16):
        yield from (bytes(size - 33) for _ in range(_BLOCKS))
    for size in (32 * step for step in range(1, 33)):
        yield from (torch.empty(size, dtype=torch.uint8) for _ in range(_BLOCKS))
    for size in (2**power for power in range(11, 18)):
        yield from (torch.empty(size, dtype=torch.uint8) for _ in range(_BLOCKS))


def _large_blocks() -> Iterator[Any]:
    """Yield mappings of up to 64 MiB, which nobody writes to, so that later mappings lie elsewhere."""
    for power in range(15):
        with contextlib.suppress(OSError, ValueError):
            yield mmap.mmap(-1, mmap.PAGESIZE << power, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, mmap.PROT_READ)


def _accelerated(clock: Callable[[], float]) -> Callable[[], float]:
    """Return a clock that gains 0.7318 seconds with each call."""
    lead = [0.0]

    def accelerated() -> float:
        lead[0] += 0.7318
        return clock() + lead[0]

    return accelerated


def create_main_module(path: str, name: str = "") -> Dict[str, Any]:
    """Create an empty ``__main__`` module for a script and return its namespace.

    ``name`` is the dotted name of a script that is run as a module, as ``python -m`` does it.
    """
    module = types.ModuleType("__main__")
    module.__file__ = path
    module.__builtins__ = builtins  # type: ignore[attr-defined]
    if name:
        module.__package__ = name.rpartition(".")[0]
        module.__spec__ = importlib.machinery.ModuleSpec(name, None, origin=path)
    sys.modules["__main__"] = module
    return module.__dict__
