"""Run one script under plain Python, and measure what it costs.

This file is sent with ``compile_metrics.py`` and ``steady_memory.py`` beside it, and started by ``measured_server.py``
or as ``python measured_run.py PLAN SCRIPT ARGUMENTS``. It pins the process to the core that the plan names, if any,
imports torch, and runs the script as ``__main__``. The figures are the last line of standard error, behind a word that
the caller made up for this run, so that no script prints it by chance.

A script that only uses eager torch never imports the compiler here. Whatever a torch lacks is left out of the figures.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.util
import json
import os
import random
import resource
import runpy
import sys
import time
from typing import Any, Callable, Dict, List, NamedTuple, Optional

#: A function of this name, without arguments, is what is timed.
BENCHMARK = "benchmark"
#: Calls without a compile before a figure is taken of a compiled function.
FEWEST_CALLS = 3
_MOST_WARM_UP = 20
_MOST_COMPILES = 10000
#: The most characters of generated code that are told.
_MOST_CODE = 200000
#: Turns of calls, the processor seconds of one, and the wall seconds and calls that one takes at most.
_TURNS, _TURN_SECONDS, _MOST_SECONDS, _MOST_CALLS = 8, 0.025, 0.15, 250
#: What was timed, where the script has such a function.
BENCHMARKED = "the fastest call of benchmark() after warm-up"
_FOLDER = os.path.dirname(os.path.abspath(__file__))


def module_beside(name: str) -> Any:
    """Import a file of this folder, which no script can reach by its name."""
    spec: Any = importlib.util.spec_from_file_location(name, os.path.join(_FOLDER, name + ".py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


steady_memory = module_beside("steady_memory")


class Call(NamedTuple):
    """A call of a compiled function: wall and processor seconds, and true if something was compiled in it."""

    wall: float
    processor: float
    compiled: bool


class Watch:
    """Watches the calls of compiled functions, and resets the peak of memory after each compile."""

    def __init__(self, torch: Any) -> None:
        self.sites: List[List[Call]] = []
        self._torch = torch
        self._open = False

    def install(self) -> None:
        """Replace ``torch.compile``; a torch before 2.0 has none."""
        real = getattr(self._torch, "compile", None)
        if real is None:
            return

        @functools.wraps(real)
        def compile(model: Any = None, *args: Any, **options: Any) -> Any:
            if model is None:
                return lambda model: compile(model, *args, **options)
            compiled = real(model, *args, **options)
            with contextlib.suppress(Exception):  # by default dynamo keeps the last 64 compiles only
                sys.modules["torch._dynamo.utils"].set_compilation_metrics_limit(_MOST_COMPILES)
            return self._watched(compiled)

        self._torch.compile = compile

    def _watched(self, compiled: Any) -> Any:
        module = getattr(getattr(self._torch, "nn", None), "Module", ())
        if isinstance(compiled, module):
            # Its own class must stay; the attribute of the instance is what its ``__call__`` reads.
            object.__setattr__(compiled, "forward", self._timed(compiled.forward))
            return compiled
        return self._timed(compiled) if callable(compiled) else compiled

    def _timed(self, function: Callable[..., Any]) -> Callable[..., Any]:
        calls: List[Call] = []
        self.sites.append(calls)
        is_compiling = getattr(getattr(self._torch, "compiler", None), "is_compiling", lambda: False)

        @functools.wraps(function)
        def timed(*args: Any, **kwargs: Any) -> Any:
            # Dynamo replaces the first condition by a constant where it traces one compiled function in another.
            if is_compiling() or self._open:
                return function(*args, **kwargs)
            self._open = True
            try:
                return self._call(calls, function, args, kwargs)
            finally:
                self._open = False

        return timed

    def _call(self, calls: List[Call], function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        frames = compiled_frames()
        synchronize(self._torch)
        processor, wall = processor_seconds(), time.perf_counter()
        result = function(*args, **kwargs)
        synchronize(self._torch)
        wall = time.perf_counter() - wall
        processor = processor_seconds() - processor
        compiled = compiled_frames() != frames
        calls.append(Call(wall, processor, compiled))
        if compiled:
            reset_peak(self._torch)
        return result


def compiled_frames() -> int:
    """Return the number of frames that dynamo has looked at; 0 without dynamo."""
    utils = sys.modules.get("torch._dynamo.utils")
    counters: Any = getattr(utils, "counters", None) or {}
    return int((counters.get("frames") or {}).get("total", 0))


def processor_seconds() -> float:
    """Return the processor time of this process and of its children that have ended."""
    times = os.times()
    return time.process_time() + times.children_user + times.children_system


def synchronize(torch: Any) -> None:
    """Wait for the GPU if the script uses one."""
    if uses_gpu(torch):
        torch.cuda.synchronize()


def uses_gpu(torch: Any) -> bool:
    """Return true if the script has started to use a GPU."""
    cuda = getattr(torch, "cuda", None)
    return bool(cuda is not None and getattr(cuda, "is_initialized", lambda: False)())


def reset_peak(torch: Any) -> None:
    """Let the peaks of memory start again from what is in use now."""
    steady_memory.release_freed_memory()
    with contextlib.suppress(OSError), open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    if uses_gpu(torch):
        torch.cuda.reset_peak_memory_stats()


def memory_status(name: str) -> int:
    """Return a line of ``/proc/self/status`` in bytes: ``VmRSS`` or ``VmHWM``; the peak elsewhere than on Linux."""
    with contextlib.suppress(OSError), open("/proc/self/status") as file:
        for line in file:
            if line.startswith(name + ":"):
                return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


class Turns:
    """Turns that two processes take: each has a pipe of its own, from which it reads a byte before each turn.

    Args:
        pipes: the paths of this process's own pipe and of the other's; ``None`` where it runs alone.
    """

    def __init__(self, pipes: Optional[List[str]]) -> None:
        self._own, self._other = map(_opened, pipes or (None, None))

    def __enter__(self) -> None:
        if self._own is not None:
            os.read(self._own, 1)

    def __exit__(self, *error: object) -> None:
        if self._other is not None:
            os.write(self._other, b".")


def _opened(pipe: Optional[str]) -> Optional[int]:
    """Open a pipe for both directions, so that opening it never waits for the other end."""
    return None if pipe is None else os.open(pipe, os.O_RDWR)


def fastest(torch: Any, function: Callable[[], Any], turns: Turns) -> Call:
    """Call a function until nothing is compiled any more, then for a fifth of a second; return its fastest call.

    The fifth is of processor time: on a busy core, many calls are interrupted, and one that is not is looked for. It is
    spent in turns with the other build, so that the fastest calls of both are of the same second.
    """
    for number in range(_MOST_WARM_UP):
        frames = compiled_frames()
        function()
        if number and compiled_frames() == frames:
            break
    walls: List[float] = []
    processors: List[float] = []
    for _ in range(_TURNS):
        with turns:
            begun = len(walls)
            while len(walls) == begun or (
                sum(processors[begun:]) < _TURN_SECONDS
                and sum(walls[begun:]) < _MOST_SECONDS
                and len(walls) < begun + _MOST_CALLS
            ):
                synchronize(torch)
                processor, wall = processor_seconds(), time.perf_counter()
                function()
                synchronize(torch)
                walls.append(time.perf_counter() - wall)
                processors.append(processor_seconds() - processor)
    return Call(min(walls), min(processors), False)


def steady_calls(sites: List[List[Call]]) -> Optional[Call]:
    """Return the fastest call of each compiled function, added up; ``None`` if none was called often enough."""
    steady = [[call for call in calls if not call.compiled] for calls in sites]
    steady = [calls for calls in steady if len(calls) >= FEWEST_CALLS]
    if not steady:
        return None
    walls = sum(min(call.wall for call in calls) for calls in steady)
    processors = sum(min(call.processor for call in calls) for calls in steady)
    return Call(walls, processors, False)


def compile_seconds(sites: List[List[Call]]) -> Optional[float]:
    """Return the processor time of the calls that compiled something; ``None`` if none did."""
    found = [call.processor for calls in sites for call in calls if call.compiled]
    return sum(found) if found else None


def compiler_counts() -> Dict[str, float]:
    """Return the exact counts of the compiler; empty if the script never used it."""
    if "torch._dynamo" not in sys.modules or not compiled_frames():
        return {}
    found: Dict[str, float] = {}
    with contextlib.suppress(Exception):
        found.update(module_beside("compile_metrics").counts())
    kernels = getattr(sys.modules.get("torch._inductor.metrics"), "generated_kernel_count", None)
    if isinstance(kernels, int):
        found["kernel-count"] = kernels
    return found


def watch_generated_code() -> List[str]:
    """Return a list that receives the code of each graph that inductor compiles from now on."""
    found: List[str] = []
    with contextlib.suppress(Exception):
        cache = importlib.import_module("torch._inductor.codecache").PyCodeCache
        real = cache.write

        def write(source: str, *args: Any, **options: Any) -> Any:
            if "def call(" in source and sum(map(len, found)) + len(source) <= _MOST_CODE:
                found.append(source)
            return real(source, *args, **options)

        cache.write = write
    return found


def set_flags(flags: List[List[Any]]) -> None:
    """Set compiler flags by their names in ``torch``. Raises ``AttributeError`` for one that this torch lacks."""
    for name, value in flags:
        module, _, path = name.partition(".config.")
        owner: Any = importlib.import_module("torch.{}.config".format(module))
        *places, flag = path.split(".")
        for place in places:
            owner = getattr(owner, place)
        getattr(owner, flag)
        setattr(owner, flag, value)


def pin(core: Optional[int]) -> None:
    """Run on one core from now on, with the processes that are started later."""
    if core is not None and hasattr(os, "sched_setaffinity"):
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, {core})


def run_script(path: str, arguments: List[str]) -> Dict[str, Any]:
    """Run a script as ``python`` does; return its global names. A status other than 0 ends this process too."""
    sys.argv = [path, *arguments]
    sys.path[0] = os.path.dirname(os.path.abspath(path))
    try:
        return runpy.run_path(path, run_name="__main__")
    except SystemExit as end:
        if end.code not in (None, 0):
            raise
        return {}


def main(plan: Dict[str, Any], path: str, arguments: List[str]) -> None:
    """Run a script and print its figures."""
    pin(plan["core"])
    import torch

    random.seed(plan["seed"])
    getattr(torch, "manual_seed", lambda seed: None)(plan["seed"])
    set_flags(plan.get("flags", []))
    watch = Watch(torch)
    watch.install()
    code = watch_generated_code() if plan.get("code") else []
    steady_memory.steady_memory()
    reset_peak(torch)
    before = memory_status("VmRSS")
    processor, wall = processor_seconds(), time.perf_counter()
    names = run_script(path, arguments)
    synchronize(torch)
    whole = Call(time.perf_counter() - wall, processor_seconds() - processor, False)
    function = names.get(BENCHMARK)
    timed = "the whole script without the import of torch"
    if callable(function):
        whole, timed = fastest(torch, function, Turns(plan.get("turns"))), BENCHMARKED
    elif steady_calls(watch.sites) is not None:
        whole = steady_calls(watch.sites) or whole
        timed = "the fastest call of each compiled function after warm-up"
    figures: Dict[str, Any] = {"time": whole.wall, "cpu-time": whole.processor, **compiler_counts()}
    if uses_gpu(torch):
        figures["memory"] = torch.cuda.max_memory_allocated()
    else:
        figures["memory"] = max(0, memory_status("VmHWM") - before)
    compiling = compile_seconds(watch.sites)
    if compiling is not None:
        figures["compile-time"] = compiling
    sys.stdout.flush()
    sys.stderr.flush()
    line = "\n{}{}\n".format(plan["mark"], json.dumps({"values": figures, "timed": timed, "code": code}))
    os.write(2, line.encode())


if __name__ == "__main__":
    main(json.loads(sys.argv[1]), sys.argv[2], sys.argv[3:])
