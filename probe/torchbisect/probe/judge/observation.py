"""Observations: an eager and a compiled run, and their differences. The agent's ``compare`` package writes them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

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

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Raised:
        """Return the value that the agent wrote as JSON."""
        return cls(
            name=data["name"],
            bases=tuple(data["bases"]),
            message=data["message"],
            frames=tuple(Frame(**frame) for frame in data["frames"]),
            cause=cls.from_json(data["cause"]) if data.get("cause") else None,
        )


@dataclass(frozen=True)
class Ending:
    """The ending of one run.

    Attributes:
        how: ``finished``, ``raised``, ``exited`` (``sys.exit`` or ``os._exit``), ``signalled``, ``timed-out``,
            ``out-of-memory``, ``lost`` (the child ended without a message) or ``not-run``.
        raised: the exception, when ``how`` is ``raised``.
        status: the exit status, when ``how`` is ``exited``.
        signal: the signal's name (``SIGSEGV``), when ``how`` is ``signalled``.
        output: the last part of what it printed.
        errors: the last part of what it wrote to standard error.
        compiled: how many regions ``torch.compile`` was asked to compile and that were then called.
        graphs: how many graphs the backend was handed; 0 in the eager run.
        waited_for_input: it read standard input, which is empty.
        compile_seconds: what compiling took, backends included.
        call_seconds: wall time of each recorded call of a compiled callable, in order; what is compiled in it counts.
            A device's work may go on after a call.
        recompiles: one reason for each time that something was compiled again.
        graph_breaks: one reason for each graph break.
    """

    how: str
    raised: Raised | None = None
    status: int | None = None
    signal: str | None = None
    seconds: float = 0.0
    output: str = ""
    errors: str = ""
    compiled: int = 0
    graphs: int = 0
    waited_for_input: bool = False
    compile_seconds: float = 0.0
    call_seconds: tuple[float, ...] = ()
    recompiles: tuple[str, ...] = ()
    graph_breaks: tuple[str, ...] = ()

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Ending:
        """Return the value that the agent wrote as JSON."""
        raised = data.get("raised")
        lists = {name: tuple(data.get(name, ())) for name in ("call_seconds", "recompiles", "graph_breaks")}
        return cls(**{**data, **lists, "raised": Raised.from_json(raised) if raised else None})


@dataclass(frozen=True)
class Difference:
    """One difference between the compiled run and the eager one.

    Attributes:
        place: where, in the structure of what crossed the boundary: ``call 0 output[1]``, ``global loss``,
            ``call 2 argument x.grad``, ``printed line 3``.
        attribute: what differs there: ``requires_grad``, ``dtype``, ``value``, ``shared storage with argument 0``.
        detail: figures for a value difference: ``index``, ``count``, ``numel``, ``largest``, ``error``, ``bound``.
    """

    kind: MismatchKind
    place: str
    attribute: str
    eager: str
    compiled: str
    detail: dict[str, Any] = field(default_factory=dict, hash=False)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Difference:
        """Return the value that the agent wrote as JSON."""
        return cls(**{**data, "kind": MismatchKind(data["kind"])})


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
    def from_json(cls, data: dict[str, Any]) -> Observation:
        """Return the value that the agent wrote as JSON."""
        return cls(
            eager=Ending.from_json(data["eager"]),
            compiled=Ending.from_json(data["compiled"]),
            differences=tuple(Difference.from_json(item) for item in data["differences"]),
            notes=tuple(data.get("notes", ())),
            drawn=bool(data.get("drawn")),
        )
