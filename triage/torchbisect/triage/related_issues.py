"""Pairs of issues that perhaps show one bug: a weaker relation than that of a group, each with what speaks for it.

Two people write different scripts for one bug, and their mismatches have different signatures. A pair is named if two
of three facts agree: the compiler's stage with the kind of mismatch, the exception's message without its numbers and
names, and an operator that few issues have. It is not named if different commits were found behind the two.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from torchbisect.triage.duplicate_groups import SPECIFIC_KINDS, duplicate_groups
from torchbisect.triage.issue_row import IssueRow

#: The pairs that are named for an issue, the strongest first.
MOST = 3
#: An operator speaks for a pair if at most this part of the issues, and at least two, have it.
_RARE = 0.1
#: A fact that more issues share than this says nothing about any two of them.
_LARGEST = 40
_ARITHMETIC = frozenset(("add", "sub", "mult", "div", "matmult", "floordiv", "mod", "pow", "getitem", "setitem", "sum"))
# What differs between two messages of one bug: numbers, addresses, quoted names, shapes and paths.
_PARTICULAR = re.compile(
    r"0x[0-9a-f]{1,16}|'[^'\n]{0,80}'|\"[^\"\n]{0,80}\"|`[^`\n]{0,80}`|[\w./-]{0,200}\d[\w./-]{0,200}"
)


@dataclass(frozen=True)
class RelatedIssues:
    """Two issues that perhaps show one bug, and the facts that they have in common, each in a few words."""

    names: tuple[str, str]
    evidence: tuple[str, ...]


def related_issues(rows: Sequence[IssueRow]) -> tuple[RelatedIssues, ...]:
    """Return the pairs of issues that perhaps show one bug and are in no group together.

    Args:
        rows: the issues; an issue comes before its duplicates.
    """
    shown = [row for row in rows if row.state in ("mismatch", "flaky")]
    group = {name: number for number, found in enumerate(duplicate_groups(rows)) for name in found.names}
    by_name = {row.name: row for row in shown}
    evidence: dict[tuple[str, str], list[str]] = defaultdict(list)
    for fact, names in _facts(shown).items():
        if 1 < len(names) <= _LARGEST:
            for pair in combinations(names, 2):
                evidence[pair].append(fact)
    pairs = [
        RelatedIssues((one, other), tuple(facts))
        for (one, other), facts in evidence.items()
        if len({fact.partition(" ")[0] for fact in facts}) > 1
        and (one not in group or group[one] != group.get(other))
        and not _different_commits(by_name[one], by_name[other])
    ]
    pairs.sort(key=lambda pair: -len(pair.evidence))
    return _at_most(pairs, {row.name: number for number, row in enumerate(rows)})


def _at_most(pairs: Sequence[RelatedIssues], position: Mapping[str, int]) -> tuple[RelatedIssues, ...]:
    """Return the first pairs of each issue, in the order of the issues."""
    count: Counter[str] = Counter()
    kept = []
    for pair in pairs:
        if all(count[name] < MOST for name in pair.names):
            count.update(pair.names)
            kept.append(pair)
    return tuple(sorted(kept, key=lambda pair: (position[pair.names[0]], position[pair.names[1]])))


def _facts(rows: Sequence[IssueRow]) -> dict[str, list[str]]:
    """Return the facts about issues in words, with the names of the issues that have each."""
    found: dict[str, list[str]] = defaultdict(list)
    limit = max(2, int(len(rows) * _RARE))
    common = Counter(name for row in rows for name in set(row.operators.split()))
    for row in rows:
        if row.component and row.kind:
            found[f"component {row.component}, kind {row.kind}"].append(row.name)
        template = message_template(row.summary) if row.kind in SPECIFIC_KINDS else ""
        if template:
            found[f"exception {template}"].append(row.name)
        for name in sorted(set(row.operators.split()) - _ARITHMETIC):
            if common[name] <= limit:
                found[f"operator {name}"].append(row.name)
    return found


def message_template(summary: str) -> str:
    """Return a message without what is particular to one script; empty if hardly anything is left."""
    text = " ".join(_PARTICULAR.sub("…", summary[:400]).split())
    return text if sum(sign.isalpha() for sign in text) >= 20 else ""


def _different_commits(one: IssueRow, other: IssueRow) -> bool:
    return any(
        mine and theirs and mine != theirs
        for mine, theirs in ((one.bad_commit, other.bad_commit), (one.fix_commit, other.fix_commit))
    )
