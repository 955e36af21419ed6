"""Compiled code that is right but slow, slow to compile, or recompiled too often; only for bounds that the user set."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from torchbisect.core.verdict import MismatchKind
from torchbisect.probe.judge.classify import Mismatch
from torchbisect.probe.judge.normalize import normalize
from torchbisect.probe.judge.observation import Ending, Observation
from torchbisect.probe.judge.signature import Signature

RUN_TIME = "run time"
_TIMING_REPEATS = 2
# A call that is compiled tells nothing of how fast the result runs, so a script must make a few.
_FEWEST_CALLS = 3
_MOST_REASONS = 3


@dataclass(frozen=True)
class Bounds:
    """Bounds on time and recompiles; ``None`` is no bound.

    Attributes:
        slower_than: how many times eager's time a compiled call may take, compiling aside.
        compile_seconds: what compiling may take.
        recompiles: how often something may be compiled again.
        graph_breaks: how many graph breaks there may be.
    """

    slower_than: float | None = None
    compile_seconds: float | None = None
    recompiles: int | None = None
    graph_breaks: int | None = None

    def __bool__(self) -> bool:
        """Return True if there is any bound."""
        return self != Bounds()


def repeated_slowness(
    observation: Observation, bounds: Bounds, run_again: Callable[[], Observation]
) -> Mismatch | None:
    """Return the bound that is exceeded, if any; a run time must exceed it in every one of several runs."""
    found = find_slowness(observation, bounds)
    for _ in range(_TIMING_REPEATS):
        if found is None or found.attribute != RUN_TIME:
            break
        found = find_slowness(run_again(), bounds)
    return found


def find_slowness(observation: Observation, bounds: Bounds) -> Mismatch | None:
    """Return the first bound that the compiled run exceeds, the run time last; ``None`` if it exceeds none."""
    compiled = observation.compiled
    for attribute, bound, reasons in (
        ("graph breaks", bounds.graph_breaks, compiled.graph_breaks),
        ("recompiles", bounds.recompiles, compiled.recompiles),
    ):
        if bound is not None and len(reasons) > bound:
            return _counted(attribute, bound, reasons)
    seconds = bounds.compile_seconds
    if seconds is not None and compiled.compile_seconds > seconds:
        words = f"{compiled.compile_seconds:.1f} s"
        return _exceeded("compile time", f"compiling takes {words}, more than {seconds:g} s", "0 s", words)
    ratio = slowdown(observation)
    if bounds.slower_than is not None and ratio is not None and ratio > bounds.slower_than:
        return _slower(_fastest_call(observation.eager), _fastest_call(compiled), bounds.slower_than)
    return None


def slowdown(observation: Observation) -> float | None:
    """Return the time of the fastest compiled call over that of the fastest eager call; ``None`` with too few calls.

    The fastest call is one in which nothing was compiled and nothing else on the machine interfered.
    """
    counts = (len(observation.eager.call_seconds), len(observation.compiled.call_seconds))
    if min(counts) < _FEWEST_CALLS or _fastest_call(observation.eager) <= 0:
        return None
    return _fastest_call(observation.compiled) / _fastest_call(observation.eager)


def _fastest_call(ending: Ending) -> float:
    return min(ending.call_seconds)


def _slower(eager: float, compiled: float, bound: float) -> Mismatch:
    ours, theirs = (f"{seconds * 1e3:.3g} ms" for seconds in (eager, compiled))
    ratio = compiled / eager
    words = f"a compiled call takes {ratio:.2f} times eager's time, more than {bound:g} ({theirs} and {ours})"
    found = _exceeded(RUN_TIME, words, ours, theirs, ratio=round(ratio, 3))
    return replace(found, signature=replace(found.signature, lost=compiled - eager))


def _counted(attribute: str, bound: int, reasons: tuple[str, ...]) -> Mismatch:
    first = [" ".join(reason.split())[:300] for reason in reasons[:_MOST_REASONS]]
    summary = f"{len(reasons)} {attribute}, more than {bound}: {first[0]}"
    return _exceeded(attribute, summary, "0", str(len(reasons)), reasons=first)


def _exceeded(attribute: str, summary: str, eager: str, compiled: str, **detail: object) -> Mismatch:
    reasons = detail.get("reasons")
    message = normalize(str(reasons[0])) if isinstance(reasons, list) else ""
    signature = Signature(MismatchKind.SLOW, attribute=attribute, message=message)
    return Mismatch(
        MismatchKind.SLOW, summary, signature, attribute=attribute, eager=eager, compiled=compiled, detail=dict(detail)
    )
