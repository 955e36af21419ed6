"""Which minor version the nightlies of a day have, and between which days a release was cut.

The days come from pytorch/test-infra's ``generate_binary_build_matrix.py`` and lag or lead the real wheels by up to
ten days; those of 2.2 and 2.3 are reckoned from the releases' own days and from single wheels that are known
(2.1.0.dev20230905, 2.2.0.dev20231010). They are hints: what a page lists goes before them.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from torchbisect.bisect.sources.listing import Listing
from torchbisect.core.build import Build, Channel

#: The day from which on nightlies are of this minor version: so about the day when the release before was cut.
FIRST_NIGHTLY_DAYS: dict[tuple[int, int], datetime.date] = {
    (2, 2): datetime.date(2023, 9, 12),
    (2, 3): datetime.date(2023, 12, 18),
    (2, 4): datetime.date(2024, 3, 16),
    (2, 5): datetime.date(2024, 6, 14),
    (2, 6): datetime.date(2024, 9, 16),
    (2, 7): datetime.date(2025, 1, 6),
    (2, 8): datetime.date(2025, 3, 18),
    (2, 9): datetime.date(2025, 7, 3),
    (2, 10): datetime.date(2025, 9, 10),
    (2, 11): datetime.date(2025, 12, 15),
    (2, 12): datetime.date(2026, 2, 20),
    (2, 13): datetime.date(2026, 4, 23),
    (2, 14): datetime.date(2026, 6, 29),
    (2, 15): datetime.date(2026, 8, 12),
}

#: How far the table above may be off.
SLACK = datetime.timedelta(days=10)


def likely_minors(date: datetime.date, known: Sequence[Build]) -> list[tuple[int, int]]:
    """The minor versions that a nightly of this day may have, the likeliest first; three at the most.

    What the table says, one less and one more, and of these only what lies between the minor versions of the nearest
    nightlies known before and after: each miss costs a request for every host and platform tag.
    """
    dated = sorted((build.date, build.minor) for build in known if build.date is not None)
    low = max((minor for day, minor in dated if day <= date), default=None)
    high = min((minor for day, minor in dated if day >= date), default=None)
    table = [minor for minor, day in sorted(FIRST_NIGHTLY_DAYS.items()) if day <= date]
    oldest = min(FIRST_NIGHTLY_DAYS)
    guess = table[-1] if table else (oldest[0], oldest[1] - 1)
    if high is not None:
        guess = min(guess, high)
    if low is not None:
        guess = max(guess, low)
    around = [guess, (guess[0], guess[1] - 1), (guess[0], guess[1] + 1)]
    return [minor for minor in around if (low is None or low <= minor) and (high is None or minor <= high)]


@dataclass(frozen=True)
class DayRange:
    """The days between which a change must have come to main, both included; ``words`` says where they come from."""

    first: datetime.date
    last: datetime.date
    words: str


def first_nightly_day(minor: tuple[int, int], listed: Sequence[Build]) -> tuple[datetime.date, bool] | None:
    """The first day of a minor version's nightlies, and whether the index itself shows it; ``None`` if unknown."""
    days = sorted((build.date, build.minor) for build in listed if build.date is not None)
    for (_, earlier), (day, later) in pairwise(days):
        if later == minor and earlier < minor:
            return day, True
    return (FIRST_NIGHTLY_DAYS[minor], False) if minor in FIRST_NIGHTLY_DAYS else None


def days_between_branch_cuts(older: Build, newer: Build, listing: Listing | None = None) -> DayRange | str:
    """The days on main between the branch cuts of two releases, or why there are none to search.

    A release is cut from main about when the nightlies step on to the next minor version. What is in ``newer`` and not
    in ``older`` came to main between the two cuts, or was picked on to a release branch; a change picked on to
    ``older``'s branch may be found a few days early, which the margin allows for.

    Args:
        older: the release at the range's older end.
        newer: the release at its newer end.
        listing: the nightlies that the index lists.
    """
    if older.channel is not Channel.RELEASE or newer.channel is not Channel.RELEASE:
        return "only a pair of releases stands for the days between their branch cuts"
    if older.minor == newer.minor:
        return (
            f"{older} and {newer} are of one release branch: what lies between them are changes picked on to that "
            "branch, which no nightly shows"
        )
    listed = listing.builds if listing else ()
    start = first_nightly_day(_next(older.minor), listed)
    end = first_nightly_day(_next(newer.minor), listed)
    if start is None:
        return f"it isn't known when {older} was cut from main"
    first = start[0] - SLACK
    if end is None:
        last = max((build.date for build in listed if build.date), default=None)
        if last is None:
            return f"it isn't known when {newer} was cut from main"
    else:
        last = end[0] + (datetime.timedelta(days=1) if end[1] else SLACK)
    return DayRange(first, last, f"{first} to {last}: main from before {older} was cut to after {newer} was cut")


def _next(minor: tuple[int, int]) -> tuple[int, int]:
    """The minor version after this one. PyTorch has counted 1.13, 2.0 and on."""
    return (2, 0) if minor == (1, 13) else (minor[0], minor[1] + 1)
