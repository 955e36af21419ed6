"""Observations: an eager and a compiled run, and their differences. The agent's ``compare`` package writes them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal

from torchbisect.core.decode import decode, time_from_outside
from torchbisect.core.verdict import MismatchKind


@dataclass(frozen=True)
class Frame:
    """One frame of a traceback: ``file`` relative to its root, ``where`` one of user, torch, library."""

    file: str
    function: str
    line: int
    where: str


@dataclass(frozen=True)
class Raised:
    """An exception that ended a run.

    Attributes:
        name: the class's qualified name with its module, ``torch._dynamo.exc.Unsupported``.
        bases: the qualified names of its base classes, nearest first, ``object`` left out.
        message: its text, capped.
        frames: outermost first.
        cause: the exception it came from, where there is one.
    """

    name: str
    bases: tuple[str, ...]
    message: str
    frames: tuple[Frame, ...]
    cause: Raised | None = None


How = Literal[
    "finished",
    "raised",
    "exited",
    "signalled",
    "timed-out",
    "out-of-memory",
    "over-limit",
    "lost",
    "forged",
    "not-run",
]


@dataclass(frozen=True)
class Ending:
    """The ending of one run.

    Attributes:
        how: ``finished``, ``raised``, ``exited`` (``sys.exit`` or ``os._exit``), ``signalled``, ``timed-out``,
            ``out-of-memory``, ``over-limit`` (another limit), ``lost`` (the child ended without a message), ``forged``
            (the agent sent something other than an answer) or ``not-run``.
        raised: the exception, when ``how`` is ``raised``.
        status: the exit status, when ``how`` is ``exited``.
        limit: the limit that the run exceeded, when ``how`` is ``over-limit`` or ``out-of-memory``.
        allowed: the seconds of processor time that the run was allowed, when ``how`` is ``timed-out``; on a loaded
            machine ``seconds`` are more.
        signal: the signal's name (``SIGSEGV``), when ``how`` is ``signalled``.
        output: the last part of what it printed.
        errors: the last part of what it wrote to standard error.
        compiled: how many regions ``torch.compile`` was asked to compile and that were then called.
        graphs: how many graphs the backend was handed; 0 in the eager run.
        raised_in_call: it ended because of an exception that came out of a call of a compiled callable.
        waited_for_input: it read standard input, which is empty.
        compile_seconds: what compiling took, backends included.
        call_seconds: wall time of each recorded call of a compiled callable, in order; what is compiled in it counts.
            A device's work may go on after a call.
        recompiles: one reason for each time that something was compiled again.
        graph_breaks: one reason for each graph break.
    """

    how: How
    raised: Raised | None = None
    status: int | None = None
    signal: str | None = None
    limit: Literal["memory", "processes", "threads", "files", "bytes"] | None = None
    seconds: float = 0.0
    allowed: float | None = None
    output: str = ""
    errors: str = ""
    compiled: int = 0
    graphs: int = 0
    raised_in_call: bool = False
    waited_for_input: bool = False
    compile_seconds: float = 0.0
    call_seconds: tuple[float, ...] = ()
    recompiles: tuple[str, ...] = ()
    graph_breaks: tuple[str, ...] = ()

    @property
    def time_limit(self) -> str:
        """The time that ran out, in words."""
        if self.allowed is None or self.seconds < self.allowed * 1.2:
            return f"{self.seconds:.0f} s"
        return f"{self.allowed:.0f} s of processor time ({self.seconds:.0f} s on this loaded machine)"


@dataclass(frozen=True)
class Difference:
    """One difference between the compiled run and the eager one.

    Attributes:
        place: where, in the structure of what crossed the boundary: ``call 0 output[1]``, ``global loss``,
            ``call 2 argument x.grad``, ``printed line 3``.
        attribute: what differs there: ``requires_grad``, ``dtype``, ``value``, ``shared storage with argument 0``.
        detail: figures for a value difference: ``index``, ``count``, ``numel``, ``largest``, ``error``, ``bound``.
        eager_raised, compiled_raised: the exceptions of a call that the script caught, where the runs differ in them.
    """

    kind: MismatchKind
    place: str
    attribute: str
    eager: str
    compiled: str
    detail: dict[str, Any] = field(default_factory=dict, hash=False)
    eager_raised: Raised | None = None
    compiled_raised: Raised | None = None


@dataclass(frozen=True)
class Observation:
    """An eager and a compiled run, and their differences, the most specific first.

    A difference in how the runs ended is not in ``differences``: ``classify`` reads it from the two endings. If it is
    ``drawn``, some of it was there only because compiled code draws random numbers in another order, and is left out.
    """

    eager: Ending
    compiled: Ending
    differences: tuple[Difference, ...] = ()
    notes: tuple[str, ...] = ()
    drawn: bool = False

    @classmethod
    def from_json(cls, data: Any) -> Observation:
        """Return the value that the agent wrote as JSON. Raise ``DecodeError`` if it has another shape."""
        seen = decode(cls, data, "observation")
        return replace(seen, eager=_with_plausible_times(seen.eager), compiled=_with_plausible_times(seen.compiled))


def _with_plausible_times(ending: Ending) -> Ending:
    """Return an ending whose times, some of which a script can change, are such that can be summed and shown."""
    return replace(
        ending,
        seconds=time_from_outside(ending.seconds),
        allowed=None if ending.allowed is None else time_from_outside(ending.allowed),
        compile_seconds=time_from_outside(ending.compile_seconds),
        call_seconds=tuple(map(time_from_outside, ending.call_seconds)),
    )
