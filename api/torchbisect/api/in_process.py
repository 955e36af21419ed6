"""Record compiled and eager runs inside this process, with the recorder and the hooks of the agent.

The agent forks a child for each run. A test suite, a notebook or a training loop has its own process, and one torch in
it. So the hooks are installed once, and each call of a compiled callable runs compiled or eager as the run in progress
asks.
"""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from torchbisect.api.script.compiler_flags import first_flags
from torchbisect.api.script.recorded_call import RecordedCall
from torchbisect.probe.agent.capture import exceptions
from torchbisect.probe.agent.capture.recording import Recorder, came_out_of_call, skip_frame
from torchbisect.probe.agent.capture.tape import Tape
from torchbisect.probe.agent.compare.evidence import Evidence
from torchbisect.probe.agent.run.child_setup import seed_generators
from torchbisect.probe.agent.run.compile_hook import CompileHook, watch_autograd, watch_hooks
from torchbisect.probe.agent.run.eager_modes import MODES, DeterministicRandom
from torchbisect.probe.agent.run.fork import Run

_TAPE_BYTES = 256 << 20
# Random draws are as before once the run is over.
_MODES: dict[str, Callable[[], Any]] = {
    **MODES,
    "deterministic_rng": functools.partial(DeterministicRandom, restores=True),
}


class SwitchedRecorder:
    """A recorder for hooks that stay installed: it passes each event on to the recorder of the run in progress.

    Attributes:
        current: the recorder of the run in progress; ``None`` between runs, when compiled code runs as it is.
        is_eager: call what was compiled, and not the compiled code.
        before_call: told of each recorded call before it is made.
    """

    def __init__(self) -> None:
        self.current: Recorder | None = None
        self.is_eager = False
        self.before_call: Callable[[RecordedCall], None] | None = None
        self.options: dict[int, dict[str, Any]] = {}
        self._backends: list[Any] = []

    @property
    def compiled_sites(self) -> set[int]:
        """The sites of the run in progress."""
        return self.current.compiled_sites if self.current is not None else set()

    @skip_frame
    def call(self, site: int, label: str, target: Any, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Call a function, or in an eager run its target, and record it; see ``Recorder.call``."""
        recorder = self.current
        if recorder is None:
            return function(*args, **kwargs)
        if self.before_call is not None and recorder.is_recording() and not recorder.is_in_call:
            number = len(recorder.call_seconds)
            self.before_call(RecordedCall(number, target, args, kwargs, self.options.get(site, {})))
        return recorder.call(site, label, target, target if self.is_eager else function, args, kwargs)

    def record_backward(self, results: Any, error: BaseException | None = None) -> None:
        """Record a run of the autograd engine; see ``Recorder.record_backward``."""
        if self.current is not None:
            self.current.record_backward(results, error)

    def add_backend(self, function: Any) -> None:
        """Note a function of a backend; also runs that come later leave out what it writes to."""
        self._backends.append(function)
        if self.current is not None:
            self.current.add_backend(function)

    def start(self, recorder: Recorder, *, is_eager: bool) -> None:
        """Pass events on to a recorder from now on."""
        for function in self._backends:
            recorder.add_backend(function)
        self.current, self.is_eager = recorder, is_eager

    def stop(self) -> None:
        """Let compiled code run as it is."""
        self.current, self.is_eager = None, False

    def add_hook(self, hook: Any) -> None:
        """Note a function that was registered as a hook."""
        if self.current is not None:
            self.current.add_hook(hook)


class _Installation(NamedTuple):
    recorder: SwitchedRecorder
    entry_points: tuple[Any, Any]  # what takes the places of ``torch.compile`` and ``torch._dynamo.optimize``


@functools.cache
def _installation() -> _Installation:
    recorder: Any = SwitchedRecorder()
    hook = CompileHook(recorder, {}, compiles=True)
    first_flags()
    hook.install()
    recorder.options = hook.options
    watch_autograd(recorder)
    watch_hooks(recorder)
    return _Installation(recorder, (torch.compile, torch._dynamo.optimize))


def installed_recorder() -> SwitchedRecorder:
    """Replace ``torch.compile`` and its like in this process, once, and return the recorder that they report to."""
    return _installation().recorder


@contextlib.contextmanager
def hooked_compiler() -> Iterator[None]:
    """Replace ``torch.compile`` and its like in this context only, and leave the flags as they were."""
    before = torch.compile, torch._dynamo.optimize
    first_flags()
    flag = torch._inductor.config.fallback_random
    torch.compile, torch._dynamo.optimize = _installation().entry_points
    try:
        yield
    finally:
        torch.compile, torch._dynamo.optimize = before
        torch._inductor.config.fallback_random = flag


@dataclass
class Recording:
    """A run in progress.

    Attributes:
        error: the exception that ended what was run; ``None`` if it finished.
        run: the record, once the run is over.
    """

    role: str
    error: BaseException | None = None
    run: Run | None = None

    def mode(self) -> contextlib.AbstractContextManager[Any]:
        """Return the context in which the role's code runs: double precision, say."""
        mode: Callable[[], Any] = _MODES.get(self.role.partition("-")[0], contextlib.nullcontext)
        made: contextlib.AbstractContextManager[Any] = mode()
        return made


@contextlib.contextmanager
def recording(role: str, folders: Sequence[str], seed: int = 0) -> Iterator[Recording]:
    """Record what is run in this context; its ``run`` is there afterwards.

    Args:
        role: that of ``child.Job``: compiled if it ends with ``compiled``, else eager.
        folders: the folders of the code whose objects are compared attribute by attribute.
        seed: set for every random generator first.
    """
    switched, tape = installed_recorder(), Tape(_TAPE_BYTES)
    classifier = exceptions.FrameClassifier(list(folders), [])
    recorder = Recorder(tape, list(folders), classifier.frame, follow_folders=True)
    seed_generators(seed)
    found, began = Recording(role), time.monotonic()
    switched.start(recorder, is_eager=not role.endswith("compiled"))
    try:
        yield found
    finally:
        switched.stop()
        recorder.finish({}, {})
        ending = {**_ending(found.error, classifier), "seconds": round(time.monotonic() - began, 4)}
        ending.update(compiled=len(recorder.compiled_sites), call_seconds=recorder.call_seconds[:200])
        found.run = Run(ending, tape.entries(), "", [], [], tape.dropped, is_ended=True)
        tape.close()


def _ending(error: BaseException | None, classifier: exceptions.FrameClassifier) -> dict[str, Any]:
    """Return how a run ended, in the form that ``observation.Ending`` reads."""
    if error is None:
        return {"how": "finished"}
    how = "out-of-memory" if exceptions.is_out_of_memory(error) else "raised"
    raised = exceptions.exception_to_json(error, classifier.frame)
    return {"how": how, "raised": raised, "raised_in_call": came_out_of_call(error)}


def compare_runs(run: Callable[[str], Run], source: str, compiled: Run | None = None) -> dict[str, Any]:
    """Return ``observation.Observation`` as JSON, from as many runs as it takes.

    Args:
        run: makes a run of a role.
        source: the text of what is run.
        compiled: the compiled run, if it is there already.
    """
    kept: dict[str, Run] = {} if compiled is None else {"compiled": compiled}

    def once(role: str) -> Run:
        if role not in kept:
            kept[role] = _comparable(run(role), kept.get("compiled"))
        return kept[role]

    with torch.random.fork_rng(devices=[]):
        return Evidence(once, once, source).observation()


def _comparable(run: Run, compiled: Run | None) -> Run:
    """Return a run; an eager one that fails in a check of its own, where compiled code does not, ends as that does.

    A test may count graphs, and count none without ``torch.compile``. What crossed the boundaries up to there counts.
    """
    if compiled is None or run is compiled or run.ending["how"] == "finished" or run.ending.get("raised_in_call"):
        return run
    if compiled.ending["how"] != "finished":
        return run
    raised = run.ending["raised"]
    note = f"without torch.compile it fails by itself, with {raised['name']}: {raised['message'][:200]}"
    return run._replace(ending={**run.ending, "how": "finished", "raised": None}, notes=[*run.notes, note])
