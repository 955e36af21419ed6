"""Faults of the environment: a missing compiler, a full disk, a torch whose own libraries do not load.

A run that ends with such a fault is no evidence about the script or the compiler. Every fault has a short name, which
verdicts, journals and reports carry.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from torchbisect.core.verdict import MismatchKind
from torchbisect.probe.judge.observation import Ending, Observation, Raised


@dataclass(frozen=True)
class Untestable:
    """The reason why a run is no evidence.

    Attributes:
        reason: the short name, ``no-compiler``.
        detail: one line that says what was seen, and what to do where something can be done.
        transient: it may not happen the next time, so it is not kept in the journal.
    """

    reason: str
    detail: str
    transient: bool = False


# The text of each fault, as the parts concerned write it: torch/_inductor/{cpp_builder,codecache,exc}.py, triton's
# runtime/build.py, torch/_dynamo/eval_frame.py (check_if_dynamo_supported), torch/_dynamo/variables/torch.py up to 2.3,
# torch/__init__.py (_TorchCompileInductorWrapper), torch/cuda/__init__.py, numpy, ld.so.
_FAULTS: tuple[tuple[str, bool, str, re.Pattern[str]], ...] = (
    (
        "disk-full",
        True,
        "the disk is full",
        re.compile(r"No space left on device|Disk quota exceeded|\[Errno 28\]|\[Errno 122\]"),
    ),
    (
        "out-of-memory",
        True,
        "out of memory",
        re.compile(r"CUDA out of memory|can't allocate memory|Cannot allocate memory|std::bad_alloc"),
    ),
    (
        "too-many-open-files",
        False,
        "a run may not have as many open files",
        re.compile(r"Too many open files(?! in system)"),
    ),
    (
        "process-limit",
        True,
        "no more processes or threads may be started",
        re.compile(r"Resource temporarily unavailable|can't start new thread|open files in system|terminated abruptly"),
    ),
    (
        "forking",
        True,
        "autograd can't run in a forked process here",
        re.compile(r"Unable to handle autograd's threading|Cannot re-initialize CUDA in forked subprocess"),
    ),
    (
        "no-compiler",
        False,
        "no working C++ compiler: install g++",
        re.compile(
            r"No working C\+\+ compiler|InvalidCxxCompiler|Failed to find C compiler|"
            r"No such file or directory: '(?:[^']*/)?(?:g\+\+|gcc|clang(?:\+\+)?|cc|c\+\+)'|"
            r"(?:g\+\+|gcc|clang(?:\+\+)?): (?:command )?not found|cannot execute .cc1plus"
        ),
    ),
    (
        "no-headers",
        False,
        "the C++ compiler lacks header files",
        re.compile(r"fatal error: (?:Python\.h|omp\.h|[a-z_]+|[a-z]+\.h): No such file|'omp\.h' file not found"),
    ),
    (
        "no-triton",
        False,
        "triton is not there",
        re.compile(r"Cannot find a working triton installation|TritonMissing|No module named 'triton"),
    ),
    (
        "no-cuda",
        False,
        "no GPU that this build can use",
        re.compile(
            r"not compiled with CUDA enabled|Found no NVIDIA driver|No CUDA GPUs are available|CUDA driver version is "
            r"insufficient|no kernel image is available|device >= 0 && device < num_gpus|CUDA error: invalid device"
        ),
    ),
    (
        "dynamo-not-supported",
        False,
        "torch.compile of this build does not support this Python",
        re.compile(
            r"not (?:yet )?supported for torch\.compile|[Dd]ynamo (?:is )?not supported on Python|"
            r"[Tt]orchdynamo is not supported"
        ),
    ),
    (
        "numpy-abi",
        False,
        "this torch and the numpy beside it do not fit",
        re.compile(
            r"compiled using NumPy 1\.x|multiarray failed to import|Numpy is not available|numpy\.dtype size changed"
        ),
    ),
    (
        "import-failed",
        False,
        "torch's own libraries do not load",
        re.compile(r"undefined symbol|cannot open shared object file|version `GLIBC[^']*' not found|DLL load failed"),
    ),
    (
        "no-such-backend",
        False,
        "this build has no such backend",
        re.compile(r"Invalid backend: |InvalidBackend"),
    ),
    (
        "no-such-feature",
        False,
        "torch.compile of this build can't do yet, or not any more, what the script asks of it",
        re.compile(
            r"capture is disabled, it can be turned on by setting|Unexpected optimization option|Unrecognized mode=|"
            r"\b(?:compile|optimize)\(\) got an unexpected keyword argument"
        ),
    ),
)
#: The faults among these that are the script's own: it took more than a run may have.
OF_THE_SCRIPT = frozenset({"out-of-memory", "too-many-open-files", "process-limit", "forking"})
_GPU = r"\b(?:cuda|gpus?|nvidia|device)\b"
_NEEDS_GPU = re.compile(
    rf"(?i){_GPU}[^\n.]{{0,40}}\b(?:required?|needed|not available|unavailable|not found|missing)\b|"
    rf"\b(?:requires?|needs?|no|without)\b[^\n.]{{0,25}}\b(?:cuda|gpus?|nvidia)\b"
)
_MISSING_MODULE = re.compile(r"No module named '?([\w.]+)'?")
# An API that is not there yet; torch's config modules raise an AttributeError of their own wording.
_MISSING_API = re.compile(
    r"module 'torch[\w.]*' has no attribute|torch[\w.]* does not exist|'torch[\w.]*' object has no attribute|"
    r"'(?:Tensor|Parameter|Module|Generator|OptimizedModule)' object has no attribute|"
    r"cannot import name '\w+' from (?:partially initialized module )?'torch|unexpected keyword argument"
)


def environment_fault(observation: Observation) -> Untestable | None:
    """Return the fault of the environment that one of the two runs shows, or ``None``."""
    for text in _texts(observation):
        for reason, transient, words, pattern in _FAULTS:
            if found := pattern.search(text):
                return Untestable(reason, f"{words} ({_line_of(text, found.start())})", transient)
    return _missing_dependency(observation)


def missing_module(observation: Observation) -> str | None:
    """Return the package, other than torch, that the script imports and that is not installed, for ``--with``."""
    raised = observation.eager.raised
    while raised is not None:
        found = _MISSING_MODULE.search(raised.message) if _is_import_error(raised) else None
        if found and found.group(1).split(".")[0] not in ("torch", "functorch"):
            return found.group(1).split(".")[0]
        raised = raised.cause
    return None


def needs_gpu(ending: Ending) -> bool:
    """Return True for a script that says at its end that it needs a GPU, and exits by itself or by an assertion."""
    raised = ending.raised
    if raised is not None and raised.name not in ("AssertionError", "RuntimeError", "ValueError"):
        return False
    if raised is None and ending.how != "exited":
        return False
    return says_that_a_gpu_is_missing(ending)


def says_that_a_gpu_is_missing(ending: Ending) -> bool:
    """Return True if the last words of a run are that there is no GPU, or that one is needed."""
    raised = ending.raised
    said = raised.message if raised is not None else f"{ending.errors[-500:]}\n{ending.output[-500:]}"
    return _NEEDS_GPU.search(said) is not None


def missing_api(observation: Observation) -> str | None:
    """Return the message of the eager run's exception if it says that this torch lacks an API; or ``None``."""
    raised = observation.eager.raised
    if raised is None:
        return None
    name = raised.name.rpartition(".")[2]
    if name in ("AttributeError", "TypeError", "ImportError", "ModuleNotFoundError", "NotImplementedError"):
        own_package = name == "ModuleNotFoundError" and "'torch" in raised.message
        if own_package or _MISSING_API.search(raised.message):
            return raised.message.strip().splitlines()[0]
    return None


def _texts(observation: Observation) -> Iterator[str]:
    for ending in (observation.eager, observation.compiled):
        yield from _exception_texts(ending.raised)
        if ending.how in ("signalled", "lost"):
            yield ending.errors
    for difference in observation.differences:
        # A script that catches the exception itself hides it from the ending, not from the record of the call.
        if difference.kind in (MismatchKind.RAISES, MismatchKind.RAISES_DIFFERENTLY):
            yield difference.compiled
            yield from _exception_texts(difference.compiled_raised)


def _exception_texts(raised: Raised | None) -> Iterator[str]:
    while raised is not None:
        yield f"{raised.name}: {raised.message}"
        raised = raised.cause


def _missing_dependency(observation: Observation) -> Untestable | None:
    """Return the fault of a package that torch needs in the compiled run and that is not installed."""
    raised = observation.compiled.raised
    while raised is not None and observation.eager.raised is None:
        found = _MISSING_MODULE.search(raised.message) if _is_import_error(raised) else None
        if found and raised.frames and raised.frames[-1].where != "user":
            return Untestable("dependency-missing", f"torch lacks a package that it needs: {found.group(1)}")
        raised = raised.cause
    return None


def _is_import_error(raised: Raised) -> bool:
    return raised.name.rpartition(".")[2] in ("ModuleNotFoundError", "ImportError")


def _line_of(text: str, position: int) -> str:
    start = text.rfind("\n", 0, position) + 1
    end = text.find("\n", position)
    return text[start : end if end >= 0 else len(text)].strip()[:200]


def ended_badly(ending: Ending) -> bool:
    """Return True unless a run finished or exited with status 0."""
    return not (ending.how == "finished" or (ending.how == "exited" and not ending.status))
