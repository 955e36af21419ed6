"""Signatures of mismatches: the parts that two showings of one bug have in common."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from torchbisect.core.repro import fingerprint
from torchbisect.core.verdict import MismatchKind
from torchbisect.probe.agent.compare.same_exception import WRAPPERS, short_name
from torchbisect.probe.judge.failing_statement import (
    FailingStatement,
    assertions_with_message,
    bound_names,
    statement_at,
    statement_in_text,
)
from torchbisect.probe.judge.normalize import attribute_class, normalize, role, value_class
from torchbisect.probe.judge.observation import Difference, Ending, Frame, Raised

# How many of torch's innermost frames are kept: the first decides, the others are for the reader.
_FRAMES = 5

# Names in JSON of attributes that have another name here.
_JSON_NAMES = {"subjects": "asks"}

_RAISED_BY_BACKEND = re.compile(r"\A\s*backend='[^']*' raised:\s*")
_CLASS_PREFIX = re.compile(r"\A\s*(?:[\w.]+\.)?([A-Za-z_]\w*(?:Error|Exception|Failed|Unsupported|Interrupt|Exit)): ?")
_GOT_INNER = re.compile(r"got (\w+(?:Error|Exception))\((['\"])(.*?)\2\)", re.DOTALL)
_USER_BLOCK = re.compile(r"from user code:\s*\n(.*?)(?:\n\s*\n|\Z)", re.DOTALL)
_RESUMED = re.compile(r"torch_dynamo_resume_in_(\w+?)_at_\d+")
_CRASH_FRAME = re.compile(r'File "[^"]*?(torch/[^"]*)", line \d+ in (\S+)')


@dataclass(frozen=True)
class Signature:
    """The identity of a bug; which attributes are set depends on the kind.

    Attributes:
        exception: the class of the exception without its module, wrappers such as ``BackendCompilerFailed`` taken
            off; for a crash the signal.
        bases: the names of its base classes, nearest first.
        message: its normalized message; for an exit the last line that the script wrote.
        causes: the normalized messages that the exception came from, nearest first.
        frames_user: functions of the script that the exception passed, innermost first. For the reader: a shrunk
            script has others.
        frames_torch: torch's innermost frames as ``torch/file.py:function``, innermost first; empty when the
            exception was raised by the script's own code.
        place: the part that the differing thing plays: ``output``, ``gradient``, ...
        attribute: what differs there.
        eager: the class of value on the eager side; of an exception that is another than eager's, that one.
        compiled: the class of value on the compiled side.
        subjects: the attributes and functions that the script's failing assertion is about; ``None`` if no statement
            of the script failed.
        stage: how far into the compiler the exception came from: ``dynamo``, ``aot`` or ``inductor``.
        relative: for a wrong number how wrong, relative to its size; ``None`` if unknown.
        lost: for a number that is too high the difference: the seconds that a compiled call takes more than an eager
            one. As a script shrinks to nothing, what is left of every ratio is that of two empty calls.
    """

    kind: MismatchKind
    exception: str = ""
    bases: tuple[str, ...] = ()
    message: str = ""
    causes: tuple[str, ...] = ()
    frames_user: tuple[str, ...] = ()
    frames_torch: tuple[str, ...] = ()
    place: str = ""
    attribute: str = ""
    eager: str = ""
    compiled: str = ""
    subjects: tuple[str, ...] | None = None
    stage: str = ""
    relative: float | None = None
    lost: float | None = None

    @classmethod
    def of_difference(cls, difference: Difference, source: str = "") -> Signature:
        """Return the signature of a difference between two runs of the script ``source``."""
        if difference.kind in (MismatchKind.RAISES, MismatchKind.RAISES_DIFFERENTLY, MismatchKind.MISSING_RAISE):
            return cls._of_caught(difference, source)
        return cls(
            kind=difference.kind,
            place=role(difference.place),
            attribute=attribute_class(difference.attribute),
            eager=_side(difference, difference.eager),
            compiled=_side(difference, difference.compiled),
            relative=_relative(difference),
        )

    @classmethod
    def _of_caught(cls, difference: Difference, source: str) -> Signature:
        """Return the signature of an exception that the script caught: that of the same exception uncaught."""
        eager = difference.eager_raised or _caught(difference.eager)
        if difference.kind is MismatchKind.MISSING_RAISE:
            return cls.of_raised(difference.kind, eager, source)
        found = cls.of_raised(difference.kind, difference.compiled_raised or _caught(difference.compiled), source)
        if difference.kind is MismatchKind.RAISES_DIFFERENTLY:
            found = replace(found, eager=cls.of_raised(MismatchKind.MISSING_RAISE, eager, source).ending)
        return found

    @classmethod
    def of_raised(cls, kind: MismatchKind, raised: Raised, source: str = "") -> Signature:
        """Return the signature of an exception that ended only one of the runs of the script ``source``."""
        names = bound_names(source)
        name, text = _unwrapped(raised)
        frames_torch = _torch_frames(raised)
        statement = _failing_statement(name, raised, frames_torch, source)
        message = normalize(text, names)
        if statement is not None and statement.kind == "assert":
            name, message = "AssertionError", normalize(statement.message or ("" if frames_torch else text), names)
            frames_torch = ()
        return cls(
            kind=kind,
            exception=name,
            bases=tuple(short_name(base) for base in raised.bases),
            message=message,
            causes=tuple(_cause_messages(raised, text, names)),
            frames_user=_user_frames(raised),
            frames_torch=frames_torch,
            subjects=statement.subjects if statement else None,
            stage=_stage(raised),
        )

    @classmethod
    def of_exit(cls, kind: MismatchKind, ending: Ending, source: str = "") -> Signature:
        """Return the signature of a script that exits in only one of the runs with a status other than 0."""
        lines = [line for line in (ending.output + "\n" + ending.errors).splitlines() if line.strip()]
        message = normalize(lines[-1], bound_names(source)) if lines else ""
        return cls(kind=kind, exception="SystemExit", message=message)

    @classmethod
    def of_crash(cls, ending: Ending) -> Signature:
        """Return the signature of a run that a signal ended; its frames are those that faulthandler printed."""
        frames = tuple(f"{file}:{function}" for file, function in _CRASH_FRAME.findall(ending.errors))
        return cls(kind=MismatchKind.CRASH, exception=ending.signal or "", frames_torch=frames[:_FRAMES])

    @classmethod
    def of_hang(cls) -> Signature:
        """Return the signature of a run that did not end."""
        return cls(kind=MismatchKind.HANG)

    @property
    def ending(self) -> str:
        """The exception and its message in one text."""
        return f"{self.exception}: {self.message}"

    @property
    def text(self) -> str:
        """One line for people."""
        if self.kind is MismatchKind.CRASH:
            return f"crash: {self.exception}" + (f" in {self.frames_torch[0]}" if self.frames_torch else "")
        if self.exception:
            asked = f" (about {', '.join(self.subjects)})" if self.subjects else ""
            where = f" in {self.frames_torch[0]}" if self.frames_torch else ""
            said = f": {self.message}" if self.message else ""
            return f"{self.kind}: {self.exception}{asked}{said}{where}"
        if not self.attribute:
            return str(self.kind)
        return f"{self.kind}: {self.attribute} ({self.place}): {self.eager} -> {self.compiled}"

    @property
    def fingerprint(self) -> str:
        """A short stable name, the same for every script and every run that shows the bug in the same words."""
        frame = self.frames_torch[0] if self.frames_torch else ""
        sides = (self.place, self.attribute, self.eager, self.compiled)
        return fingerprint(str(self.kind), self.exception, self.message, frame, sides, self.subjects)

    def to_json(self) -> dict[str, Any]:
        """Return the form that ``from_json`` reads."""
        values = {_JSON_NAMES.get(name, name): value for name, value in asdict(self).items()}
        return {**values, "kind": str(self.kind)}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Signature:
        """Read what ``to_json`` wrote. Raises ``KeyError``, ``TypeError`` or ``ValueError`` if it has another shape."""
        names = {_JSON_NAMES.get(field.name, field.name): field.name for field in fields(cls)}
        values: dict[str, Any] = {names[key]: value for key, value in data.items() if key in names}
        values = {key: tuple(value) if isinstance(value, list) else value for key, value in values.items()}
        return cls(**{**values, "kind": MismatchKind(data["kind"])})


def _caught(text: str) -> Raised:
    name, _, message = text.partition(": ")
    return Raised(name, (), message, ())


def own_statement(raised: Raised, source: str = "") -> FailingStatement | None:
    """Return the script's own statement that an exception came from, if it is an assertion, a raise or an exit."""
    return _failing_statement(_unwrapped(raised)[0], raised, _torch_frames(raised), source)


def _side(difference: Difference, text: str) -> str:
    return "text" if difference.attribute == "text" else value_class(text)


def _relative(difference: Difference) -> float | None:
    """Return the relative error of a number: as the agent measured it, else from the two printed sides."""
    given = difference.detail.get("relative")
    if isinstance(given, (int, float)) and math.isfinite(given):
        return float(given)
    try:
        eager, compiled = float(difference.eager), float(difference.compiled)
    except ValueError:
        return None
    size = max(abs(eager), abs(compiled))
    return abs(eager - compiled) / size if size and math.isfinite(eager) and math.isfinite(compiled) else None


def _chain(raised: Raised) -> Iterator[Raised]:
    """Yield the exception and its causes, nearest first."""
    link: Raised | None = raised
    while link is not None:
        yield link
        link = link.cause


def _unwrapped(raised: Raised) -> tuple[str, str]:
    """Return the class and message of the exception inside those that only wrap it."""
    name, text = short_name(raised.name), _RAISED_BY_BACKEND.sub("", raised.message)
    if name not in WRAPPERS:
        return name, text
    while found := _CLASS_PREFIX.match(text):
        name, text = found.group(1), text[found.end() :]
        if name not in WRAPPERS:
            return name, text
    got = _GOT_INNER.search(text)
    if got:
        return got.group(1), text
    # What is below a wrapper that names no class is its cause; the wrapper's own text says more, so it stays.
    inner = [short_name(link.name) for link in _chain(raised) if short_name(link.name) not in WRAPPERS]
    return (inner[0] if inner else name), text


def _cause_messages(raised: Raised, text: str, names: frozenset[str]) -> Iterator[str]:
    got = _GOT_INNER.search(text)
    if got:
        yield normalize(got.group(3), names)
    for link in list(_chain(raised))[1:]:
        message = normalize(link.message, names)
        if message:
            yield message


def _torch_frames(raised: Raised) -> tuple[str, ...]:
    """Torch's innermost frames, of the first cause that has any; none if the script's own code raised it.

    ``torch.testing`` raises for the assertions of a script, so its frames are the script's own code.
    """
    frames: tuple[Frame, ...] = ()
    for link in _chain(raised):
        if link.frames:
            frames = link.frames
    ours = [frame for frame in frames if frame.where in ("torch", "user")]
    if not ours or ours[-1].where == "user" or "torch/testing/" in ours[-1].file:
        return ()
    inner = [f"{_from_torch(frame.file)}:{frame.function}" for frame in reversed(frames) if frame.where == "torch"]
    return tuple(inner[:_FRAMES])


def _stage(raised: Raised) -> str:
    files = [frame.file for link in _chain(raised) for frame in link.frames if frame.where == "torch"]
    stages = (("_inductor/", "inductor"), ("_functorch/", "aot"), ("_dynamo/", "dynamo"))
    return next((name for part, name in stages if any(part in file for file in files)), "")


def _from_torch(file: str) -> str:
    position = file.rfind("site-packages/")
    file = file[position + len("site-packages/") :] if position >= 0 else file
    return file if file.startswith(("torch/", "functorch/", "triton/")) else f"torch/{file}"


def _user_frames(raised: Raised) -> tuple[str, ...]:
    functions = [_RESUMED.sub(r"\1", frame.function) for frame in raised.frames if frame.where == "user"]
    return tuple(reversed(functions))[:_FRAMES]


def _failing_statement(
    name: str, raised: Raised, frames_torch: tuple[str, ...], source: str
) -> FailingStatement | None:
    """Return the script's own statement that raised the exception, if one did.

    Dynamo 2.6 and later raise an ``AssertionError`` of their own while they trace a failing assertion; which one it
    was is in the text that they append.
    """
    if not frames_torch:
        user = [frame for frame in raised.frames if frame.where == "user"]
        return statement_at(source, user[-1].line) if user else None
    if name == "AssertionError" and frames_torch[0].endswith("symbolic_convert.py:jump"):
        return _quoted_assertion(raised.message)
    if name == "RuntimeError" and frames_torch[0].endswith("graph_module.py:__call__"):
        statements = assertions_with_message(source, raised.message)
        if statements:
            subjects = sorted({word for statement in statements for word in statement.subjects})
            return FailingStatement("assert", tuple(subjects), statements[0].message, statements[0].text)
    return None


def _quoted_assertion(message: str) -> FailingStatement | None:
    block = _USER_BLOCK.search(message)
    if block is None:
        return None
    lines = [line.strip() for line in block.group(1).splitlines()]
    statements = [line for line in lines if line and not line.startswith('File "') and line.strip("~^ ")]
    return statement_in_text(statements[-1]) if statements else None
