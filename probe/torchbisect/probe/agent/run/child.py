"""One run of a script, in a child of the agent that was forked for it and dies with it."""

from __future__ import annotations

import atexit
import builtins
import contextlib
import ctypes
import gc
import io
import os
import random
import resource
import signal
import sys
import threading
import time
import traceback
import types
from typing import Any, Callable, Dict, List, NamedTuple, Optional

import torch
import torch._dynamo

from ..capture import exceptions
from ..capture.recording import Recorder
from ..capture.tape import Tape
from . import compile_metrics
from .compile_hook import Compiling
from .deterministic_rng import SettledDraws
from .float64 import DoublePrecision
from .tie_breaking import OtherChoice

_exit = os._exit
MOST_TIMED = 200  # calls whose seconds are told
MALLOC_PERTURB = -6  # M_PERTURB of glibc's mallopt


class Job(NamedTuple):
    """What a child is to do.

    Attributes:
        role: ``eager``, ``compiled``, ``perturbed`` (eager again, with all that may vary varied), ``float64``,
        ``chosen`` (eager again, with another of equal elements chosen), ``settled`` and ``settled-compiled`` (both
        again, with random numbers that hang on no order), ``trace``. repro: ``repro.Repro`` as JSON.
        settings: ``repro.Settings`` as JSON.
        scratch: a folder of its own.
        caches: where inductor and triton keep what they make.
        memory: bytes of private memory it may add to what it inherits; 0 for no limit.
        threads: for torch's operators.
    """

    role: str
    repro: Dict[str, Any]
    settings: Dict[str, Any]
    scratch: str
    caches: str
    memory: int
    threads: int


def work(job: Job, tape: Tape) -> None:
    """Run the script to its end and leave the process. Never returns."""
    status = 70
    try:
        status = _work(job, tape)
    except BaseException as error:
        with contextlib.suppress(BaseException):
            tape.append({"e": "broken", "raised": exceptions.raised(error, _any_frame)})
    finally:
        _exit(status)


def _any_frame(file: str, function: str, line: int) -> Dict[str, Any]:
    return {"file": os.path.basename(file), "function": function, "line": line, "where": "library"}


def _work(job: Job, tape: Tape) -> int:
    _limit(job)
    folder = os.path.join(job.scratch, "script")
    for name, text in job.repro.get("siblings", {}).items():
        _write(os.path.join(folder, name), text)
    path = os.path.join(folder, os.path.basename(job.repro.get("name") or "repro.py"))
    _write(path, job.repro["source"])
    os.chdir(folder)
    _environment(job)
    waited = _streams()
    own = job.repro.get("directory")
    folders = [folder] + ([own] if own else [])
    sys.path[:0] = [own] if own else [folder]
    sys.argv = [path, *job.repro.get("arguments", ())]
    _quiet_parents_leftovers()
    recorder = Recorder(tape, folders)
    compiling = Compiling(recorder, job.settings, honoured=job.role.endswith("compiled"))
    compiling.install()
    if job.role == "perturbed":
        _perturb()
    _seed(int(job.repro.get("seed", 0)))
    namespace = _main_module(path)
    places = exceptions.Places(folders, [job.caches])
    process = os.getpid()
    modes: Dict[str, Callable[[], Any]] = {"float64": DoublePrecision, "chosen": OtherChoice, "settled": SettledDraws}
    mode = modes.get(job.role.partition("-")[0], contextlib.nullcontext)()
    tracer = recorder.tracer = _tracer(job, path, namespace)

    def finish(ending: Dict[str, Any]) -> None:
        ending.update(compiled=len(recorder.compiled), waited_for_input=bool(waited))
        ending.update(compile_metrics.figures(), call_seconds=recorder.seconds[:MOST_TIMED])
        ending.update(notes=compiling.notes, backends=sorted(compiling.backends))
        if tracer is not None:
            tape.append({"e": "trace", "trace": tracer.result()})
        recorder.finish(ending, namespace)

    _watch_exit(process, finish)
    ending = _run(path, job.repro["source"], namespace, places, mode, tracer)
    if os.getpid() != process:  # the script forked, and its child came out here
        return int(ending.get("status") or 0)
    finish(ending)
    _leave()
    tape.append({"e": "closed"})
    return 0


def _write(path: str, text: str) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8", errors="surrogatepass") as file:
        file.write(text)


# Before the script ----------------------------------------------------------------------------------------------------


def _limit(job: Job) -> None:
    for name in ("SIGINT", "SIGTERM", "SIGPIPE", "SIGHUP"):
        default = signal.default_int_handler if name == "SIGINT" else signal.SIG_DFL
        signal.signal(getattr(signal, name), default if name != "SIGPIPE" else signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if job.memory:
        # Data, and not the address space: a CUDA build maps tens of gigabytes that it never touches.
        limit = _data_size() + job.memory
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))


def _data_size() -> int:
    with open("/proc/self/status") as file:
        for line in file:
            if line.startswith("VmData:"):
                return int(line.split()[1]) * 1024
    return 0


def _environment(job: Job) -> None:
    os.makedirs(job.caches, exist_ok=True)
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = os.path.join(job.caches, "inductor")
    os.environ["TRITON_CACHE_DIR"] = os.path.join(job.caches, "triton")
    os.environ["TMPDIR"] = job.scratch
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
    os.environ.pop("TORCHDYNAMO_DISABLE", None)
    torch._dynamo.config.disable = False
    torch.set_num_threads(max(1, job.threads))
    torch._dynamo.reset()
    compile_metrics.forget()


def _quiet_parents_leftovers() -> None:
    """Exit handlers and frozen garbage that the child inherits are the agent's, not the script's."""
    atexit._clear()
    gc.enable()


class _Input(io.TextIOBase):
    """Standard input that is empty and notes that somebody asked."""

    def __init__(self, asked: List[int]) -> None:
        self._asked = asked
        self.buffer = _Bytes(asked)

    def readable(self) -> bool:
        return True

    def fileno(self) -> int:
        return 0

    def read(self, size: Optional[int] = -1) -> str:
        self._asked.append(1)
        return ""

    def readline(self, size: int = -1) -> str:  # type: ignore[override]
        self._asked.append(1)
        return ""


class _Bytes(io.RawIOBase):
    def __init__(self, asked: List[int]) -> None:
        self._asked = asked

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._asked.append(1)
        return 0


def _streams() -> List[int]:
    """Python's streams over the descriptors that the agent put in place; returns what grows when input is asked for."""
    asked: List[int] = []
    sys.stdin = sys.__stdin__ = _Input(asked)  # type: ignore[assignment,misc]
    sys.stdout = sys.__stdout__ = io.TextIOWrapper(  # type: ignore[misc]
        io.FileIO(1, "wb", closefd=False), encoding="utf-8", errors="backslashreplace", write_through=True
    )
    sys.stderr = sys.__stderr__ = io.TextIOWrapper(  # type: ignore[misc]
        io.FileIO(2, "wb", closefd=False), encoding="utf-8", errors="backslashreplace", write_through=True
    )
    return asked


def _seed(seed: int) -> None:
    random.seed(seed)
    torch.manual_seed(seed)
    numpy = sys.modules.get("numpy")
    if numpy is None:
        with contextlib.suppress(ImportError):
            import numpy
    if numpy is not None:
        numpy.random.seed(seed % (1 << 32))


def _perturb() -> None:
    """Vary what no two runs need agree on: bytes of fresh memory, the clock, where objects lie."""
    with contextlib.suppress(OSError, AttributeError):
        # What is handed out is filled with the complement, 0x5A: as a float large, where 0xA5 would pass for nothing.
        ctypes.CDLL(None).mallopt(MALLOC_PERTURB, 0xA5)
    perturbed = [object() for _ in range(4099)] + [torch.empty(size) for size in (1, 7, 64, 1000, 4096)]
    builtins._torchbisect_kept = perturbed  # type: ignore[attr-defined]
    for name in ("time", "perf_counter", "monotonic", "process_time", "thread_time"):
        setattr(time, name, _racing(getattr(time, name)))


def _racing(clock: Callable[[], float]) -> Callable[[], float]:
    lead = [0.0]

    def racing() -> float:
        lead[0] += 0.7318
        return clock() + lead[0]

    return racing


def _main_module(path: str) -> Dict[str, Any]:
    module = types.ModuleType("__main__")
    module.__file__ = path
    module.__builtins__ = builtins  # type: ignore[attr-defined]
    sys.modules["__main__"] = module
    return module.__dict__


# The script -----------------------------------------------------------------------------------------------------------


def _run(
    path: str, source: str, namespace: Dict[str, Any], places: exceptions.Places, mode: Any, tracer: Any
) -> Dict[str, Any]:
    """Run the script; how it ended, as ``observation.Ending`` reads it."""
    try:
        code = compile(source, path, "exec", dont_inherit=True)
        with mode, tracer if tracer is not None else contextlib.nullcontext():
            _execute(code, namespace)
    except SystemExit as leaving:
        return {"how": "exited", "status": _status(leaving.code)}
    except BaseException as error:
        _tell("".join(traceback.format_exception(type(error), error, error.__traceback__)))
        how = "out-of-memory" if exceptions.is_memory(error) else "raised"
        return {"how": how, "raised": exceptions.raised(error, places.frame)}
    return {"how": "finished"}


def _execute(code: Any, namespace: Dict[str, Any]) -> None:
    """Run the script's code; afterwards the builtins are again what they were."""
    held = dict(vars(builtins))
    try:
        exec(code, namespace)
    finally:
        vars(builtins).update(held)


def _status(code: Any) -> int:
    """The exit status that Python makes of what ``sys.exit`` was given."""
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xFF
    _tell("{}\n".format(code))
    return 1


def _tell(text: str) -> None:
    """Write to standard error, wherever the script may have put ``sys.stderr``."""
    with contextlib.suppress(OSError):
        os.write(2, text.encode("utf-8", "backslashreplace")[-(64 << 10) :])


def _watch_exit(process: int, finish: Callable[[Dict[str, Any]], None]) -> None:
    """``os._exit`` leaves no time to look at the globals; so look first."""

    def leaving(status: int) -> None:
        if os.getpid() == process:
            with contextlib.suppress(BaseException):
                finish({"how": "exited", "status": int(status) & 0xFF})
        _exit(status)

    os._exit = leaving  # type: ignore[assignment]


def _leave() -> None:
    """What Python does after a script: wait for its threads, run its exit handlers, flush its streams."""
    for step in (threading._shutdown, atexit._run_exitfuncs):  # type: ignore[attr-defined]
        with contextlib.suppress(Exception, SystemExit):
            step()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(BaseException):
            stream.flush()


def _tracer(job: Job, path: str, namespace: Dict[str, Any]) -> Any:
    if job.role != "trace":
        return None
    from ..trace.tracing import Tracer

    return Tracer(path, job.repro["source"], namespace)
