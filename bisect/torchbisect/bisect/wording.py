"""The sentences about a boundary, for regressions and for fixes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class BoundaryWording:
    """The texts for one kind of boundary; ``before`` and ``after`` are in the order of time."""

    title: str
    changed: str
    before: str
    after: str
    before_open: str
    after_open: str
    nothing: str


REGRESSION = BoundaryWording(
    title="Last good and first bad",
    changed="broke",
    before="last good",
    after="first bad",
    before_open="Already bad in {build}, the oldest build that could be tested.",
    after_open="Good in {build}, and no bad build was found after it.",
    nothing="Where it broke could not be found.",
)
FIX = BoundaryWording(
    title="Last bad and first fixed",
    changed="was fixed",
    before="last bad",
    after="first fixed",
    before_open="Already fixed in {build}, the oldest build that could be tested.",
    after_open="Still bad in {build}, the newest build that could be tested.",
    nothing="Where it was fixed could not be found.",
)


def sentence(
    texts: BoundaryWording,
    before: str | None,
    after: str | None,
    between: Sequence[str] = (),
    *,
    exact: bool = False,
    confidence: float | None = None,
) -> str:
    """Return the boundary as one sentence without markup.

    Args:
        texts: the texts for the kind of boundary.
        before: the build on the older side, or ``None``.
        after: the build on the newer side, or ``None``.
        between: the builds between the two, which gave no verdict.
        exact: no build lies between the two.
        confidence: the probability that the boundary is right, from 0 to 1; ``None`` if each answer is certain.
    """
    statement = _statement(texts, before, after, between, exact)
    if confidence is None:
        return statement
    return f"{statement.removesuffix('.')} (the script is flaky: this is {_percent(confidence)} sure)."


def _statement(
    texts: BoundaryWording, before: str | None, after: str | None, between: Sequence[str], exact: bool
) -> str:
    if before is None and after is None:
        return texts.nothing
    if before is None:
        return texts.before_open.format(build=after)
    if after is None:
        return texts.after_open.format(build=before)
    if not between and exact:
        return f"It {texts.changed} in {after}: {texts.before} {before}, {texts.after} {after}."
    if not between:
        return f"It {texts.changed} between {before} ({texts.before}) and {after} ({texts.after})."
    return (
        f"It {texts.changed} after {before} ({texts.before}) and not later than {after} ({texts.after}); "
        f"{join_names(between)} between them gave no verdict."
    )


def change_verb(reverted: bool) -> str:
    """Return the beginning of a sentence about a commit's change on a build."""
    return "Reverting" if reverted else "Applying"


def proof_result(passes: bool | None, why_not: str | None) -> str:
    """Return the end of a sentence about a commit's change on a build; ``passes`` is ``None`` if it can't be told."""
    if passes is None:
        return f"could not be shown to help: {why_not or 'no reason is known'}"
    return "makes it pass" if passes else "does not make it pass"


def _percent(share: float) -> str:
    """Return a percentage, rounded down so that no confidence is overstated; 99.9% at most."""
    return f"{int(min(share, 0.999) * 1000) / 10:g}%" if 0 <= share <= 1 else f"{share:g}"


def join_names(names: Sequence[str], limit: int = 8) -> str:
    """Join names for a sentence: ``a``, ``a and b``, ``a, b and c``, ``a, b and 7 more``."""
    if len(names) > limit:
        return f"{', '.join(names[: limit - 1])} and {len(names) - limit + 1} more"
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"
