"""Group issues that look like one bug: they share a signature or a commit.

A wrong grouping can lose a bug, while a missed duplicate costs a person a few minutes. So two issues with one
signature stay apart if their compiler stages or their ranges of builds differ. A signature without an exception is
weak evidence: then the smallest scripts have to call the same operators too. Commits count only if testing commits
found them, because two bugs may come with one release.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from torchbisect.triage.issue_row import IssueRow

#: Kinds of mismatch with an exception or a signal, whose signature says much.
SPECIFIC_KINDS = frozenset({"raises", "raises-differently", "missing-raise", "crash"})
_SAME_FIELDS = ("component", "backend", "last_good", "first_bad", "last_bad", "first_fixed")


@dataclass(frozen=True)
class DuplicateGroup:
    """Issues that look like one bug.

    Attributes:
        names: the names of the issues in their order; at least two.
        reasons: the facts that they have in common, each in a few words.
    """

    names: tuple[str, ...]
    reasons: tuple[str, ...]

    @property
    def first(self) -> str:
        """The oldest issue, of which the others look like duplicates."""
        return self.names[0]


def duplicate_groups(rows: Sequence[IssueRow]) -> tuple[DuplicateGroup, ...]:
    """Return the groups among issues, in the order of their first issue; each issue is in one group at most.

    Args:
        rows: the issues; an issue comes before its duplicates.
    """
    parent = {row.name: row.name for row in rows}
    position = {row.name: number for number, row in enumerate(rows)}

    def root(name: str) -> str:
        while parent[name] != name:
            parent[name] = parent[parent[name]]
            name = parent[name]
        return name

    shared: dict[str, dict[str, None]] = defaultdict(dict)
    for names, reason in _sets_in_common(rows):
        for name in names[1:]:
            first, second = sorted((root(names[0]), root(name)), key=position.__getitem__)
            parent[second] = first
        shared[names[0]][reason] = None
    members: dict[str, list[str]] = defaultdict(list)
    reasons: dict[str, dict[str, None]] = defaultdict(dict)
    for row in rows:
        members[root(row.name)].append(row.name)
        reasons[root(row.name)] |= shared.get(row.name, {})
    return tuple(
        DuplicateGroup(tuple(names), tuple(reasons[first])) for first, names in members.items() if len(names) > 1
    )


def _sets_in_common(rows: Iterable[IssueRow]) -> list[tuple[list[str], str]]:
    """Return lists of names that share evidence of one bug, each with that evidence."""
    found: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for row in rows:
        if row.state not in ("mismatch", "flaky"):
            continue
        if row.signature:
            operators = "" if row.kind in SPECIFIC_KINDS else row.operators
            same = tuple(getattr(row, name) for name in _SAME_FIELDS)
            found[("same signature", row.signature, operators, *same)].append(row.name)
        if row.bad_commit:
            found["same first bad commit", row.bad_commit].append(row.name)
        if row.fix_commit:
            found["same fixing commit", row.fix_commit, row.signature].append(row.name)
    return [(names, key[0]) for key, names in found.items() if len(names) > 1]
