"""Groups of tests with new failures: which tests show one bug, and what was found about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from torchbisect.triage.duplicate_groups import SPECIFIC_KINDS, duplicate_groups
from torchbisect.triage.issue_row import IssueRow, called_operators


@dataclass(frozen=True)
class TestGroup:
    """Tests that show one mismatch.

    Attributes:
        tests: their names; the first one was shrunk and bisected.
        row: what was found about the first one.
        minimal: the shrunk script; empty if there is none.
    """

    __test__ = False  # no test of pytest's

    tests: tuple[str, ...]
    row: IssueRow = field(default_factory=lambda: IssueRow(""))
    minimal: str = ""

    @property
    def first(self) -> str:
        """The test that was shrunk and bisected."""
        return self.tests[0]

    @property
    def edge(self) -> str:
        """The builds on both sides of the boundary, in words."""
        row = self.row
        if row.first_bad:
            return f"{row.last_good or '?'} good, {row.first_bad} bad"
        if row.first_fixed:
            return f"{row.last_bad or '?'} bad, {row.first_fixed} fixed"
        return ""

    @property
    def edge_builds(self) -> tuple[str, str] | None:
        """The good and the bad build at the boundary, if both were found."""
        row = self.row
        if row.last_good and row.first_bad:
            return row.last_good, row.first_bad
        if row.last_bad and row.first_fixed:
            return row.first_fixed, row.last_bad
        return None

    def to_json(self) -> dict[str, Any]:
        """Return the group as a value of ``suite.json``."""
        shown: tuple[str, ...] = (
            "kind",
            "summary",
            "signature",
            "component",
            "backend",
            "last_good",
            "first_bad",
            "bad_commit",
        )
        shown += ("last_bad", "first_fixed", "fix_commit", "state", "reason", "unfinished", "report")
        row = asdict(self.row)
        return {"tests": list(self.tests), **{name: row[name] for name in shown}, "minimal": self.minimal}


def first_groups(rows: Sequence[IssueRow], reached: Mapping[str, str]) -> tuple[TestGroup, ...]:
    """Group the tests before anything is shrunk.

    Tests are together if their mismatches have one signature. Wrong numbers are wrong numbers, so without an exception
    in the signature the tests must call the same operators too.

    Args:
        rows: what was observed about each test.
        reached: the source that each test reaches, by its name.
    """
    found: dict[tuple[str, ...], list[IssueRow]] = {}
    for row in rows:
        operators = "" if row.kind in SPECIFIC_KINDS else " ".join(called_operators(reached[row.name]))
        found.setdefault((row.signature, operators), []).append(row)
    return tuple(TestGroup(tuple(row.name for row in same), same[0]) for same in found.values())


def merged(groups: Sequence[TestGroup]) -> tuple[TestGroup, ...]:
    """Put groups together that look like one bug now that they were shrunk and bisected, as triage does with issues."""
    by_name = {group.first: group for group in groups}
    together: dict[str, list[str]] = {}
    for same in duplicate_groups([group.row for group in groups]):
        together[same.first] = [*same.names]
    later = {name for names in together.values() for name in names[1:]}
    return tuple(
        replace(
            group,
            tests=tuple(test for name in together.get(group.first, [group.first]) for test in by_name[name].tests),
        )
        for group in groups
        if group.first not in later
    )
