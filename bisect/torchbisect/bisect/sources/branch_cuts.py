"""The days when releases were cut from main, and the minor version of the nightlies of a day.

The days come from pytorch/test-infra's ``generate_binary_build_matrix.py`` and differ from the real wheels by up to ten
days. Those of 2.2 and 2.3 are estimates from the dates of the releases and of single known wheels (2.1.0.dev20230905,
2.2.0.dev20231010). They are hints: the dates on an index's page are preferred.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from torchbisect.bisect.sources.listing import Listing
from torchbisect.core.build import Build, Channel

#: The first day with nightlies of a minor version, which is about the day when the release before was cut.
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

#: The largest error of the days in the table above.
TABLE_TOLERANCE = datetime.timedelta(days=10)


def likely_minors(date: datetime.date, known: Sequence[Build]) -> list[tuple[int, int]]:
    """Return the minor versions that a nightly of this day may have, the likeliest first; three at most.

    These are the version in the table, the one before and the one after. Of these only the ones between the nearest
    known nightlies count, since each wrong version costs a request for every host and platform tag.
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
    """The days, both included, in which a change came to main; ``description`` names them and their source."""

    first: datetime.date
    last: datetime.date
    description: str


class NoDayRange(Exception):
    """Two releases have no days on main to search; the text is the reason."""


def first_nightly_day(minor: tuple[int, int], listed: Sequence[Build]) -> tuple[datetime.date, bool] | None:
    """Return the first day of a minor version's nightlies, and true if the index shows it; ``None`` if unknown."""
    days = sorted((build.date, build.minor) for build in listed if build.date is not None)
    for (_, earlier), (day, later) in pairwise(days):
        if later == minor and earlier < minor:
            return day, True
    return (FIRST_NIGHTLY_DAYS[minor], False) if minor in FIRST_NIGHTLY_DAYS else None


def days_between_branch_cuts(older: Build, newer: Build, listing: Listing | None = None) -> DayRange:
    """Return the days on main between the branch cuts of two releases. Raise ``NoDayRange`` if there are none.

    A release is cut from main about when the nightlies change to the next minor version. A change that ``newer`` has
    and ``older`` lacks came to main between the two cuts, or was cherry-picked to a release branch. A change picked to
    the branch of ``older`` may be found a few days early, for which the tolerance allows. ``listing`` has the nightlies
    on the index's page.
    """
    if older.channel is not Channel.RELEASE or newer.channel is not Channel.RELEASE:
        raise NoDayRange("only a pair of releases stands for the days between their branch cuts")
    if older.minor == newer.minor:
        raise NoDayRange(
            f"{older} and {newer} are of one release branch: between them lie changes picked to that branch, "
            "which no nightly has"
        )
    listed = listing.builds if listing else ()
    start = first_nightly_day(_next_minor(older.minor), listed)
    end = first_nightly_day(_next_minor(newer.minor), listed)
    if start is None:
        raise NoDayRange(f"it isn't known when {older} was cut from main")
    first = start[0] - TABLE_TOLERANCE
    if end is None:
        last = max((build.date for build in listed if build.date), default=None)
        if last is None:
            raise NoDayRange(f"it isn't known when {newer} was cut from main")
    else:
        last = end[0] + (datetime.timedelta(days=1) if end[1] else TABLE_TOLERANCE)
    return DayRange(first, last, f"{first} to {last}: main from before {older} was cut to after {newer} was cut")


def _next_minor(minor: tuple[int, int]) -> tuple[int, int]:
    """Return the minor version after this one; 2.0 follows 1.13."""
    return (2, 0) if minor == (1, 13) else (minor[0], minor[1] + 1)
