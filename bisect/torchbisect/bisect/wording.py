"""The sentences about an edge. The one place where text for a regression is turned round for a fix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Side:
    """The words for the two sides of an edge, in the order of time."""

    title: str
    changed: str
    before: str
    after: str
    before_open: str
    after_open: str
    nothing: str


REGRESSION = Side(
    title="Last good and first bad",
    changed="broke",
    before="last good",
    after="first bad",
    before_open="Already bad in {build}, the oldest build that could be tested.",
    after_open="Good in {build}, and no bad build was found after it.",
    nothing="Where it broke could not be found.",
)
FIX = Side(
    title="Last bad and first fixed",
    changed="was fixed",
    before="last bad",
    after="first fixed",
    before_open="Already fixed in {build}, the oldest build that could be tested.",
    after_open="Still bad in {build}, the newest build that could be tested.",
    nothing="Where it was fixed could not be found.",
)


def sentence(
    side: Side,
    before: str | None,
    after: str | None,
    between: Sequence[str] = (),
    *,
    exact: bool = False,
    confidence: float | None = None,
) -> str:
    """What was found, as one plain sentence; no markup.

    Args:
        side: the words.
        before: the build on the older side, or ``None``.
        after: the build on the newer side, or ``None``.
        between: what lies between the two and gave no verdict.
        exact: the two are neighbours.
        confidence: how likely it is true, where single answers are not certain; from 0 to 1.
    """
    said = _said(side, before, after, between, exact)
    if confidence is None:
        return said
    return f"{said.removesuffix('.')} (the script is flaky: this is {_percent(confidence)} sure)."


def _said(side: Side, before: str | None, after: str | None, between: Sequence[str], exact: bool) -> str:
    if before is None and after is None:
        return side.nothing
    if before is None:
        return side.before_open.format(build=after)
    if after is None:
        return side.after_open.format(build=before)
    if not between and exact:
        return f"It {side.changed} in {after}: {side.before} {before}, {side.after} {after}."
    if not between:
        return f"It {side.changed} between {before} ({side.before}) and {after} ({side.after})."
    return (
        f"It {side.changed} after {before} ({side.before}) and not later than {after} ({side.after}); "
        f"{listed(between)} between them gave no verdict."
    )


def _percent(share: float) -> str:
    """Rounded down, for a confidence must not be overstated: 0.9999 is 99.9%, and so is what is next to 1."""
    return f"{int(min(share, 0.999) * 1000) / 10:g}%" if 0 <= share <= 1 else f"{share:g}"


def listed(names: Sequence[str], limit: int = 8) -> str:
    """Names as a sentence has them: ``a``, ``a and b``, ``a, b and c``, ``a, b and 7 more``."""
    if len(names) > limit:
        return f"{', '.join(names[: limit - 1])} and {len(names) - limit + 1} more"
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"
