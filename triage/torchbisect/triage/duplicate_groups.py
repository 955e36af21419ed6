"""Which issues are one bug: the same signature, or the same commit.

A bug that is taken for another one is lost, and a duplicate that is not named costs a person minutes. So what was
measured and speaks against one bug keeps two issues with the same signature apart: another compiler stage, another
range of builds. A signature without an exception says little (wrong numbers are wrong numbers), so there the smallest
scripts have to call the same operators too. Two commits are one only if asking commits found them: two bugs that came
with one release are no duplicates.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from torchbisect.triage.rows import Row

_SAYS_MUCH = frozenset({"raises", "raises-differently", "missing-raise", "crash"})
_TELLING = ("component", "backend", "last_good", "first_bad", "last_bad", "first_fixed")


@dataclass(frozen=True)
class Group:
    """Issues that look like one bug.

    Attributes:
        names: of the issues, the first one first; at least two.
        reasons: what they have in common, each in a few words.
    """

    names: tuple[str, ...]
    reasons: tuple[str, ...]

    @property
    def first(self) -> str:
        """The issue that the others look like duplicates of."""
        return self.names[0]


def groups(rows: Sequence[Row]) -> tuple[Group, ...]:
    """The groups among issues, in the order of their first one; an issue is in one of them at most.

    Args:
        rows: in the order in which an earlier issue comes before its duplicates.
    """
    parent = {row.name: row.name for row in rows}
    position = {row.name: number for number, row in enumerate(rows)}

    def top(name: str) -> str:
        while parent[name] != name:
            parent[name] = parent[parent[name]]
            name = parent[name]
        return name

    shared: dict[str, dict[str, None]] = defaultdict(dict)
    for names, reason in _alike(rows):
        for name in names[1:]:
            first, second = sorted((top(names[0]), top(name)), key=position.__getitem__)
            parent[second] = first
        shared[names[0]][reason] = None
    members: dict[str, list[str]] = defaultdict(list)
    reasons: dict[str, dict[str, None]] = defaultdict(dict)
    for row in rows:
        members[top(row.name)].append(row.name)
        reasons[top(row.name)] |= shared.get(row.name, {})
    return tuple(Group(tuple(names), tuple(reasons[first])) for first, names in members.items() if len(names) > 1)


def _alike(rows: Iterable[Row]) -> list[tuple[list[str], str]]:
    """Names that share something that makes them one bug, and what it is."""
    found: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for row in rows:
        if row.state not in ("mismatch", "flaky"):
            continue
        if row.signature:
            called = "" if row.kind in _SAYS_MUCH else row.operators
            told = tuple(getattr(row, name) for name in _TELLING)
            found[("same signature", row.signature, called, *told)].append(row.name)
        if row.bad_commit:
            found["same first bad commit", row.bad_commit].append(row.name)
        if row.fix_commit:
            found["same fixing commit", row.fix_commit, row.signature].append(row.name)
    return [(names, key[0]) for key, names in found.items() if len(names) > 1]
