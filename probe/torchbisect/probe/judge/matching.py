"""When two signatures are the same bug.

Two levels. ``STRICT`` is for shrinking a script, where the torch stays: its innermost frame, its message and what
differs have to be the same, and only what the script brings in (names, lines, shapes, structure) may change.
``TOLERANT`` is for another torch, whose functions were renamed and whose messages were reworded between two builds,
while the script stays as it is.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator

from torchbisect.core.mismatch import MismatchKind
from torchbisect.probe.judge import locations
from torchbisect.probe.judge.normalize import common_share, jaccard, keywords
from torchbisect.probe.judge.signature import CAUGHT, Signature


class Strictness(str, enum.Enum):
    """How much two signatures must have in common."""

    STRICT = "strict"
    TOLERANT = "tolerant"

    def __str__(self) -> str:
        return self.value


# A message that is alike to this degree is the same one, reworded by what the script brings in.
_ALIKE_STRICT = 0.75
# Of the words of the shorter message this share must be in the other one, and no fewer words than the next figure.
_ALIKE_TOLERANT = 0.6
_WORDS_TOLERANT = 3
# A number that is off by more than this, relative to its size, is plainly wrong; below it is a matter of precision.
_PLAINLY_WRONG = 1e-2
# Shrinking moves the size of an error; by less than this factor it does not make another bug of it.
_LEEWAY = 10.0

_RAISING = frozenset({MismatchKind.RAISES, MismatchKind.RAISES_DIFFERENTLY, MismatchKind.MISSING_RAISE})
# Bases that say nothing: half of all exceptions have one of them.
_BROAD = frozenset({"Exception", "BaseException", "object", "RuntimeError", "TorchDynamoException"})
# Where torch's classes say only who passed an exception on, a release may have another or none.
_PASSED_ON = frozenset({"TorchRuntimeError", "InternalTorchDynamoError", "BackendCompilerFailed", "InductorError"})
_OF_SHAPES = frozenset({"size", "sizes", "shape", "shapes", "dimension", "dimensions", "broadcast", "expand", "numel"})
_ASSERTION = "assertion error"


def matches(left: Signature, right: Signature, strictness: Strictness) -> bool:
    """Return True if two signatures, of a script and a changed one or of two builds, are the same bug.

    The order of the two matters in one case: while a script is shrunk, a number that is clearly wrong may not become
    one that is off by a rounding.
    """
    return _first_difference(left, right, strictness) is None


def explain(left: Signature, right: Signature, strictness: Strictness) -> str:
    """Return ``same``, or one line that says why ``right`` is another bug than ``left``."""
    reason = _first_difference(left, right, strictness)
    return "same" if reason is None else f"other: {reason}"


def _first_difference(left: Signature, right: Signature, strictness: Strictness) -> str | None:
    """The first thing in which ``right`` is not the bug that ``left`` is, in words; ``None`` if it is that bug."""
    if left.kind is not right.kind:
        return f"{right.kind}, not {left.kind}"
    if left.kind is MismatchKind.HANG:
        return None
    if left.kind is MismatchKind.CRASH:
        return _unlike_crash(left, right, strictness)
    if left.kind in _RAISING and (left.exception or right.exception):
        return _unlike_raised(left, right, strictness)
    return _unlike_observed(left, right, strictness)


def _unlike_crash(left: Signature, right: Signature, strictness: Strictness) -> str | None:
    if strictness is Strictness.TOLERANT:
        return None
    if left.exception != right.exception:
        return f"{right.exception}, not {left.exception}"
    return _unlike_place(left, right) if left.frames_torch and right.frames_torch else None


def _unlike_observed(left: Signature, right: Signature, strictness: Strictness) -> str | None:
    if left.attribute != right.attribute:
        return f"{right.attribute} differs, not {left.attribute}"
    if not locations.compatible(left.place, right.place):
        return f"seen in an {right.place}, not in an {left.place}"
    ours, theirs = (left.eager, left.compiled), (right.eager, right.compiled)
    if ours != theirs:
        return f"{' -> '.join(theirs)}, not {' -> '.join(ours)}"
    if strictness is Strictness.TOLERANT:
        return None
    if not _equally_wrong(left.relative, right.relative):
        return f"wrong by {right.relative:.1g} of its size, not by {left.relative:.1g}"
    if left.lost is not None and right.lost is not None and right.lost < left.lost / _LEEWAY:
        return f"a call loses {right.lost:.1g} s, not {left.lost:.1g} s"
    return _unlike_message(left, right) if left.kind is MismatchKind.COMMAND else None


def _equally_wrong(left: float | None, right: float | None) -> bool:
    """Whether a plain error has not become a matter of precision.

    The other way round is as it should be: what is far off in one function is thinned out in the loss of a network
    round it, and comes to light as that network is taken away.
    """
    if left is None or right is None:
        return True
    return not (left > _PLAINLY_WRONG and right < _PLAINLY_WRONG / _LEEWAY)


def _unlike_raised(left: Signature, right: Signature, strictness: Strictness) -> str | None:
    if left.asks is not None or right.asks is not None:
        return _unlike_own_statement(left, right, strictness)
    if strictness is Strictness.STRICT:
        if left.exception != right.exception:
            return f"{right.exception}, not {left.exception}"
        return _unlike_place(left, right) or _unlike_message(left, right)
    if not _related_classes(left, right):
        return f"{right.exception}, not {left.exception}"
    if _same_words(left, right):
        return None
    if _says_little(left) and _says_little(right) and _unlike_place(left, right) is None:
        return None
    if _about_shapes(left) and _about_shapes(right) and left.exception == right.exception and left.stage == right.stage:
        return None
    return f"another message: {right.message or '(none)'}"


def _unlike_place(left: Signature, right: Signature) -> str | None:
    ours, theirs = left.frames_torch[:1], right.frames_torch[:1]
    if ours == theirs or CAUGHT in (left.place, right.place):
        return None
    return f"raised in {_named(theirs)}, not in {_named(ours)}"


def _named(frames: tuple[str, ...]) -> str:
    return frames[0] if frames else "the script"


def _unlike_message(left: Signature, right: Signature) -> str | None:
    if left.message == right.message or jaccard(keywords(left.message), keywords(right.message)) >= _ALIKE_STRICT:
        return None
    return f"another message: {right.message or '(none)'}"


def _unlike_own_statement(left: Signature, right: Signature, strictness: Strictness) -> str | None:
    """Two failing statements of scripts: the same if they ask about the same things, or say the same."""
    if left.asks is None or right.asks is None:
        own, foreign = (left, right) if left.asks is not None else (right, left)
        if strictness is Strictness.TOLERANT and _is_traced_assertion(own, foreign):
            return None
        return f"{right.exception} raised by {_raiser(right)}, not by {_raiser(left)}"
    if strictness is Strictness.STRICT and left.exception != right.exception:
        return f"{right.exception}, not {left.exception}"
    if left.message and left.message == right.message:
        return None
    ours, theirs = set(left.asks), set(right.asks)
    if ours == theirs or (ours and theirs and (ours <= theirs or theirs <= ours)):
        return None
    return f"asserts about {', '.join(right.asks) or 'a value'}, not about {', '.join(left.asks) or 'a value'}"


def _raiser(signature: Signature) -> str:
    return "the script's own statement" if signature.asks is not None else _named(signature.frames_torch[:1])


def _is_traced_assertion(own: Signature, foreign: Signature) -> bool:
    """Dynamo before 2.4 raises a failing traced assertion as a ``RuntimeError`` with the assertion's message."""
    if foreign.exception not in ("RuntimeError", "AssertionError"):
        return False
    return foreign.message == _ASSERTION or bool(own.message and foreign.message == own.message)


def _related_classes(left: Signature, right: Signature) -> bool:
    if left.exception == right.exception or {left.exception, right.exception} & _PASSED_ON:
        return True
    ours, theirs = {left.exception, *left.bases} - _BROAD, {right.exception, *right.bases} - _BROAD
    return left.exception in theirs or right.exception in ours or bool(ours & theirs)


def _messages(signature: Signature) -> Iterator[frozenset[str]]:
    for message in (signature.message, *signature.causes):
        words = keywords(message)
        if words:
            yield words


def _says_little(signature: Signature) -> bool:
    return all(len(words) < _WORDS_TOLERANT for words in _messages(signature))


def _about_shapes(signature: Signature) -> bool:
    """Whether it complains of shapes that do not fit.

    One wrong shape makes one operator complain in one build and the next operator in another; the words have nothing in
    common but this.
    """
    return any(words & _OF_SHAPES for words in _messages(signature))


def _same_words(left: Signature, right: Signature) -> bool:
    for ours in _messages(left):
        for theirs in _messages(right):
            if ours == theirs:
                return True
            enough = len(ours & theirs) >= _WORDS_TOLERANT
            if enough and common_share(ours, theirs) >= _ALIKE_TOLERANT:
                return True
    return False
