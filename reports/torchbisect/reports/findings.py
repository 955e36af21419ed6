"""Every sentence about a range of builds; here only are the words turned round for a search that looks for a fix."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from packaging.version import InvalidVersion, Version

from torchbisect.reports.report import Bisect, BuildFacts, Fix, Regression, Skip, Suspect, Tested


@dataclass(frozen=True)
class Words:
    """The words for the two sides of a change, in the order of time."""

    title: str
    changed: str
    before: str
    after: str
    before_open: str
    after_open: str
    nothing: str


BROKE = Words(
    title="Last good and first bad",
    changed="broke",
    before="last good",
    after="first bad",
    before_open="Already bad in {build}, the oldest build that could be tested.",
    after_open="Good in {build}, and no bad build was found after it.",
    nothing="Where it broke could not be found.",
)
MENDED = Words(
    title="Last bad and first fixed",
    changed="was fixed",
    before="last bad",
    after="first fixed",
    before_open="Already fixed in {build}, the oldest build that could be tested.",
    after_open="Still bad in {build}, the newest build that could be tested.",
    nothing="Where it was fixed could not be found.",
)


@dataclass(frozen=True)
class Range:
    """A change between two builds, whichever way it went; ``before`` and ``after`` are in the order of time."""

    words: Words
    before: str | None
    after: str | None
    exact: bool
    between: tuple[str, ...]
    skipped: tuple[Skip, ...]
    remark: str | None
    compare: str | None
    suspects: tuple[Suspect, ...]


def ranges(bisect: Bisect | None) -> tuple[Range, ...]:
    """The ranges that a search looked for: where it broke, then where it was fixed."""
    if bisect is None:
        return ()
    found = [_regression(bisect.regression)] if bisect.regression else []
    return (*found, *([_fix(bisect.fix)] if bisect.fix else []))


def _regression(found: Regression) -> Range:
    return _range(BROKE, found.last_good, found.first_bad, found)


def _fix(found: Fix) -> Range:
    return _range(MENDED, found.last_bad, found.first_fixed, found)


def _range(words: Words, before: str | None, after: str | None, found: Regression | Fix) -> Range:
    return Range(
        words=words,
        before=before,
        after=after,
        exact=found.exact,
        between=found.between,
        skipped=found.skipped,
        remark=found.words,
        compare=found.compare,
        suspects=found.suspects,
    )


def sentence(found: Range) -> str:
    """What was found, as one plain sentence; no markup."""
    words = found.words
    if found.before is None and found.after is None:
        return found.remark or words.nothing
    if found.before is None:
        return words.before_open.format(build=found.after)
    if found.after is None:
        return words.after_open.format(build=found.before)
    if not found.between and found.exact:
        return f"It {words.changed} in {found.after}: {words.before} {found.before}, {words.after} {found.after}."
    if not found.between:
        return f"It {words.changed} between {found.before} ({words.before}) and {found.after} ({words.after})."
    return (
        f"It {words.changed} after {found.before} ({words.before}) and not later than {found.after} ({words.after}); "
        f"{listed(found.between)} between them gave no verdict."
    )


def listed(names: Sequence[str], limit: int = 8) -> str:
    """Names as a sentence has them: ``a``, ``a and b``, ``a, b and c``, ``a, b and 7 more``."""
    if len(names) > limit:
        return f"{', '.join(names[: limit - 1])} and {len(names) - limit + 1} more"
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"


def ordered(bisect: Bisect, builds: Mapping[str, BuildFacts]) -> list[Tested]:
    """The builds asked, from old to new."""
    place = {name: number for number, name in enumerate(in_order(bisect, builds))}
    return sorted(bisect.tested, key=lambda row: place[row.build])


def left_out(skips: Sequence[Skip]) -> list[tuple[str, str]]:
    """Builds left out, with the reason; neighbours with the same reason are one entry: ``1.0.0 to 1.9.1``."""
    groups = []
    for reason, group in itertools.groupby(skips, key=lambda skip: skip.reason):
        names = [skip.build for skip in group]
        groups.append((listed(names) if len(names) < 3 else f"{names[0]} to {names[-1]}", reason))
    return groups


def in_order(bisect: Bisect, builds: Mapping[str, BuildFacts]) -> list[str]:
    """All builds of a search, asked or not, from old to new.

    The channel's own order, as it is; where another channel's builds were asked as well, all go by their versions: a
    nightly comes before the release that it led to.
    """
    listed, asked = dict.fromkeys(bisect.listed), [row.build for row in bisect.tested]
    if listed.keys() >= set(asked):
        return list(listed)
    return sorted({**listed, **dict.fromkeys(asked)}, key=lambda name: (_version(builds, name), name))


def _version(builds: Mapping[str, BuildFacts], name: str) -> Version:
    for candidate in (builds[name].version if name in builds else name, name):
        try:
            return Version(candidate)
        except InvalidVersion:
            continue
    return Version("0")
