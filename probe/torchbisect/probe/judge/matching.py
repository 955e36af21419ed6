"""Match signatures: decide if two mismatches are the same bug.

``STRICT`` is for shrinking a script on one torch: the innermost frame, the message and the difference must be the same,
and only what comes from the script (names, lines, shapes, structure) may change. ``TOLERANT`` is for one script on
another torch, where functions were renamed and messages reworded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from torchbisect.core.text_enum import TextEnum
from torchbisect.core.verdict import MismatchKind
from torchbisect.probe.judge.normalize import common_share, jaccard, keywords, same_role
from torchbisect.probe.judge.signature import Signature


class Strictness(TextEnum):
    """The degree to which two signatures must agree."""

    STRICT = "strict"
    TOLERANT = "tolerant"


# A message that is alike to this degree is the same one, reworded by what the script brings in.
_LEAST_JACCARD_STRICT = 0.75
# Of the words of the shorter message this share must be in the other one, and no fewer words than the next figure.
_LEAST_SHARE_TOLERANT = 0.6
_LEAST_WORDS_TOLERANT = 3
# A number that is off by more than this, relative to its size, is clearly wrong; below it is a matter of precision.
_CLEARLY_WRONG = 1e-2
# Shrinking moves the size of an error; by less than this factor it does not make another bug of it.
_ERROR_SIZE_FACTOR = 10.0

_RAISING = frozenset({MismatchKind.RAISES, MismatchKind.RAISES_DIFFERENTLY, MismatchKind.MISSING_RAISE})
# Bases that say nothing: half of all exceptions have one of them.
_BROAD = frozenset({"Exception", "BaseException", "object", "RuntimeError", "TorchDynamoException"})
# Where torch's classes say only who passed an exception on, a release may have another or none.
_WRAPPER_CLASSES = frozenset(
    {"TorchRuntimeError", "InternalTorchDynamoError", "BackendCompilerFailed", "InductorError"}
)
_SHAPE_WORDS = frozenset(
    {"size", "sizes", "shape", "shapes", "dimension", "dimensions", "broadcast", "expand", "numel"}
)
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
    """Return the first reason why ``right`` is another bug than ``left``, in words; ``None`` if it is the same."""
    if left.kind is not right.kind:
        return f"{right.kind}, not {left.kind}"
    if left.kind is MismatchKind.HANG:
        return None
    if left.kind is MismatchKind.CRASH:
        return _crash_difference(left, right, strictness)
    if left.kind in _RAISING and (left.exception or right.exception):
        return _exception_difference(left, right, strictness)
    return _observed_difference(left, right, strictness)


def _crash_difference(left: Signature, right: Signature, strictness: Strictness) -> str | None:
    if strictness is Strictness.TOLERANT:
        return None
    if left.exception != right.exception:
        return f"{right.exception}, not {left.exception}"
    return _frame_difference(left, right) if left.frames_torch and right.frames_torch else None


def _observed_difference(left: Signature, right: Signature, strictness: Strictness) -> str | None:
    if left.attribute != right.attribute:
        return f"{right.attribute} differs, not {left.attribute}"
    if not same_role(left.place, right.place):
        return f"seen in an {right.place}, not in an {left.place}"
    ours, theirs = (left.eager, left.compiled), (right.eager, right.compiled)
    if ours != theirs:
        return f"{' -> '.join(theirs)}, not {' -> '.join(ours)}"
    if strictness is Strictness.TOLERANT:
        return None
    if not _equally_wrong(left.relative, right.relative):
        return f"wrong by {right.relative:.1g} of its size, not by {left.relative:.1g}"
    if left.lost is not None and right.lost is not None and right.lost < left.lost / _ERROR_SIZE_FACTOR:
        return f"a call loses {right.lost:.1g} s, not {left.lost:.1g} s"
    return _message_difference(left, right) if left.kind is MismatchKind.COMMAND else None


def _equally_wrong(left: float | None, right: float | None) -> bool:
    """Return False if a clear error has become a matter of precision; the opposite happens as a script shrinks."""
    if left is None or right is None:
        return True
    return not (left > _CLEARLY_WRONG and right < _CLEARLY_WRONG / _ERROR_SIZE_FACTOR)


def _exception_difference(left: Signature, right: Signature, strictness: Strictness) -> str | None:
    if left.subjects is not None or right.subjects is not None:
        return _statement_difference(left, right, strictness)
    strict = f"{right.exception}, not {left.exception}" if left.exception != right.exception else None
    strict = strict or _frame_difference(left, right) or _message_difference(left, right)
    if strictness is Strictness.STRICT or strict is None:
        return strict
    if not _related_classes(left, right):
        return f"{right.exception}, not {left.exception}"
    if _messages_overlap(left, right):
        return None
    if _has_few_words(left) and _has_few_words(right) and _frame_difference(left, right) is None:
        return None
    if _about_shapes(left) and _about_shapes(right) and left.exception == right.exception and left.stage == right.stage:
        return None
    return f"another message: {right.message or '(none)'}"


def _frame_difference(left: Signature, right: Signature) -> str | None:
    ours, theirs = left.frames_torch[:1], right.frames_torch[:1]
    if ours == theirs:
        return None
    return f"raised in {_frame_text(theirs)}, not in {_frame_text(ours)}"


def _frame_text(frames: tuple[str, ...]) -> str:
    return frames[0] if frames else "the script"


def _message_difference(left: Signature, right: Signature) -> str | None:
    if (
        left.message == right.message
        or jaccard(keywords(left.message), keywords(right.message)) >= _LEAST_JACCARD_STRICT
        or _fits(left.message, right.message)
        or _fits(right.message, left.message)
    ):
        return None
    return f"another message: {right.message or '(none)'}"


def _fits(message: str, other: str) -> bool:
    """Return True if a message is the other one where it has a name of its script: another may not bind that name."""
    parts = message.split("<name>")
    says_more = len(parts) > 1 and bool(keywords(message))
    return says_more and bool(re.fullmatch(r"[\w.<>]+".join(map(re.escape, parts)), other))


def _statement_difference(left: Signature, right: Signature, strictness: Strictness) -> str | None:
    """Compare two failing statements of scripts: they are the same if their subjects or their messages are."""
    if left.subjects is None or right.subjects is None:
        own, foreign = (left, right) if left.subjects is not None else (right, left)
        if strictness is Strictness.TOLERANT and _is_traced_assertion(own, foreign):
            return None
        return f"{right.exception} raised by {_raiser(right)}, not by {_raiser(left)}"
    if strictness is Strictness.STRICT and left.exception != right.exception:
        return f"{right.exception}, not {left.exception}"
    if left.message and left.message == right.message:
        return None
    ours, theirs = set(left.subjects), set(right.subjects)
    if ours == theirs or (ours and theirs and (ours <= theirs or theirs <= ours)):
        return None
    return f"asserts about {', '.join(right.subjects) or 'a value'}, not about {', '.join(left.subjects) or 'a value'}"


def _raiser(signature: Signature) -> str:
    return "the script's own statement" if signature.subjects is not None else _frame_text(signature.frames_torch[:1])


def _is_traced_assertion(own: Signature, foreign: Signature) -> bool:
    """Dynamo before 2.4 raises a failing traced assertion as a ``RuntimeError`` with the assertion's message."""
    if foreign.exception not in ("RuntimeError", "AssertionError"):
        return False
    return foreign.message == _ASSERTION or bool(own.message and foreign.message == own.message)


def _related_classes(left: Signature, right: Signature) -> bool:
    if left.exception == right.exception or {left.exception, right.exception} & _WRAPPER_CLASSES:
        return True
    ours, theirs = {left.exception, *left.bases} - _BROAD, {right.exception, *right.bases} - _BROAD
    return left.exception in theirs or right.exception in ours or bool(ours & theirs)


def _messages(signature: Signature) -> Iterator[frozenset[str]]:
    for message in (signature.message, *signature.causes):
        words = keywords(message)
        if words:
            yield words


def _has_few_words(signature: Signature) -> bool:
    return all(len(words) < _LEAST_WORDS_TOLERANT for words in _messages(signature))


def _about_shapes(signature: Signature) -> bool:
    """Return True for a message about wrong shapes, at which another operator may fail in another build."""
    return any(words & _SHAPE_WORDS for words in _messages(signature))


def _messages_overlap(left: Signature, right: Signature) -> bool:
    for ours in _messages(left):
        for theirs in _messages(right):
            if ours == theirs:
                return True
            enough = len(ours & theirs) >= _LEAST_WORDS_TOLERANT
            if enough and common_share(ours, theirs) >= _LEAST_SHARE_TOLERANT:
                return True
    return False
