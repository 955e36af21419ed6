"""Keep the instruction sets and precompiled headers that inductor finds, so that each process need not find them again.

Most of that time goes to two things that no script changes. ``pick_vec_isa`` builds a library for each instruction set
and loads it in a new Python, which imports torch (``torch/_inductor/cpu_vec_isa.py``; up to torch 2.4 in
``codecache.py``). From torch 2.8 on ``_precompile_header`` compiles 150 MB of headers (``codecache.py``). Torch names
both kinds of files by their content, the compiler, its flags and the version of torch, so files that do not fit are
never used.

Only files made here are kept: before the first script, or between two scripts, in a folder that did not exist before.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from typing import Any, Callable, Dict, Iterator, List, Sequence

INSTRUCTION_SETS = "instruction-sets"
HEADERS = "precompiled-headers"
EVERY_SET_WORKS = "every-instruction-set-works"
_LOAD_SECONDS = 60.0


def install(kept: str, cache: str) -> None:
    """Find the instruction sets that work on this machine, in this process and for its children.

    Args:
        kept: the folder that outlives this process; empty for none.
        cache: inductor's cache folder of this process, which must not exist yet; of no use without ``kept``.
    """
    headers = _header_folder()
    if kept:
        _copy_missing(os.path.join(kept, INSTRUCTION_SETS), cache)
        if headers:
            _copy_missing(os.path.join(kept, HEADERS), headers)
    with _forked_loads(), _tried_from_the_end():
        _isa_module().pick_vec_isa()
    if kept:
        _copy_missing(cache, os.path.join(kept, INSTRUCTION_SETS))
        sets = _sets_of_processor()
        if sets and all(map(bool, sets)) and not variables(kept):
            with whole_file(os.path.join(kept, EVERY_SET_WORKS)) as partial, open(partial, "w") as file:
                file.write(_compiler_and_processor())


def variables(kept: str) -> Dict[str, str]:
    """Return the variables that spare a process the test of the instruction sets, where every one is known to work.

    With ``TORCHINDUCTOR_VEC_ISA_OK`` torch takes all those that the processor has, and its test would do the same: it
    loads a library for each, in a new Python that imports torch. Known for this processor and compiler only.
    """
    try:
        with open(os.path.join(kept, EVERY_SET_WORKS)) as file:
            known = file.read() == _compiler_and_processor()
    except OSError:
        known = False
    return {"TORCHINDUCTOR_VEC_ISA_OK": "1"} if known else {}


def _compiler_and_processor() -> str:
    """Return a text that changes with the compiler and with the instruction sets of the processor."""
    compiler = os.path.realpath(shutil.which(os.environ.get("CXX", "g++")) or "")
    found = [compiler, str(os.stat(compiler).st_mtime_ns) if os.path.isfile(compiler) else ""]
    with contextlib.suppress(OSError), open("/proc/cpuinfo") as lines:
        found += [line for line in lines if line.startswith("flags")][:1]
    return "\n".join(found)


def keep_headers(kept: str) -> None:
    """Keep the headers that a first compile has compiled."""
    headers = _header_folder()
    if kept and headers:
        _copy_missing(headers, os.path.join(kept, HEADERS))


def is_known(kept: str) -> bool:
    """Return True if the instruction sets are in a folder that ``install`` was given."""
    return os.path.isdir(os.path.join(kept, INSTRUCTION_SETS))


def _isa_module() -> Any:
    try:
        import torch._inductor.cpu_vec_isa as module
    except ImportError:
        import torch._inductor.codecache as module
    return module


def _header_folder() -> str:
    """Return the folder of precompiled headers; empty before torch 2.8."""
    import torch._inductor.codecache as codecache

    return getattr(codecache, "_HEADER_DIR", "")


def _copy_missing(source: str, target: str) -> None:
    """Copy the files of a folder that another folder lacks, each under its final name only when it is whole."""
    for place, folders, names in os.walk(source):
        folders[:] = [name for name in folders if name != "locks"]
        into = os.path.normpath(os.path.join(target, os.path.relpath(place, source)))
        for name in names:
            final = os.path.join(into, name)
            if name.endswith(".lock") or os.path.exists(final):
                continue
            with whole_file(final) as partial:
                shutil.copy2(os.path.join(place, name), partial)


@contextlib.contextmanager
def whole_file(final: str) -> Iterator[str]:
    """Give the path of an empty file, which gets the name ``final`` at the end, or is removed if that fails."""
    os.makedirs(os.path.dirname(final), exist_ok=True)
    descriptor, partial = tempfile.mkstemp(dir=os.path.dirname(final), suffix=".lock")
    os.close(descriptor)
    try:
        yield partial
        os.replace(partial, final)
    except BaseException:
        os.unlink(partial)
        raise


class _ForkingSubprocess:
    """The module ``subprocess``, but a new Python that only loads a library is a fork of this process.

    A library that is there already is not built again, as torch does before 2.4: its name tells its content.
    """

    def __getattr__(self, name: str) -> Any:
        return getattr(subprocess, name)

    def check_call(self, command: Sequence[str], **options: Any) -> int:
        return int(self.run(command, check=True, **options).returncode)

    def check_output(self, command: Sequence[str], **options: Any) -> Any:
        built = list(command)[list(command).index("-o") + 1 :][:1] if "-o" in command else []
        return b"" if built and os.path.exists(built[0]) else subprocess.check_output(command, **options)

    def run(self, command: Sequence[str], **options: Any) -> "subprocess.CompletedProcess[Any]":
        if list(command[:2]) != [sys.executable, "-c"] or "LoadLibrary" not in command[2]:
            return subprocess.run(command, **options)
        status = _status_of_fork(command[2])
        if status and options.get("check"):
            raise subprocess.CalledProcessError(status, command)
        return subprocess.CompletedProcess(command, status)


def _fork(act: Callable[[], object]) -> int:
    """Start a fork of this process that ends with status 0 if ``act`` raises nothing; return its number."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            act()
            status = 0
        finally:
            os._exit(status)
    return child


def _sets_of_processor() -> List[Any]:
    """Return the instruction sets that the processor has, by torch's own list; empty before torch 2.4."""
    module = _isa_module()
    has: Sequence[str] = getattr(module, "x86_isa_checker", list)()
    return [one for one in module.supported_vec_isa_list if has and all(flag in has for flag in str(one).split())]


@contextlib.contextmanager
def _tried_from_the_end() -> Iterator[None]:
    """Meanwhile have a fork try the processor's instruction sets in reverse order, as torch tries one after the other.

    Both wait for each other's build of a library, and find it built. Torch before 2.4 does not say which sets those of
    the processor are.
    """
    sets = _sets_of_processor()
    child = _fork(lambda: [bool(one) for one in reversed(sets)]) if len(sets) > 1 else None
    try:
        yield
    finally:
        if child is not None:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


def _status_of_fork(source: str) -> int:
    """Execute source text in a fork of this process; return 0 if it ends well in time."""
    child = _fork(lambda: exec(compile(source, "<load>", "exec"), {"__name__": "__main__"}))
    until = time.monotonic() + _LOAD_SECONDS
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return status
        if time.monotonic() > until:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return 1
        time.sleep(0.002)


@contextlib.contextmanager
def _forked_loads() -> Iterator[None]:
    """Have torch's test of a library run in a fork of this process, which has torch imported already."""
    module = _isa_module()
    module.subprocess = _ForkingSubprocess()
    try:
        yield
    finally:
        module.subprocess = subprocess
