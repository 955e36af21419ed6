"""Recognize issues that the ledger knows already: by their script, or by the signature of their mismatch."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from torchbisect.core.printable import one_line
from torchbisect.core.python_text import parse_python
from torchbisect.core.repro import fingerprint
from torchbisect.triage.duplicate_groups import SPECIFIC_KINDS
from torchbisect.triage.issue_row import IssueRow
from torchbisect.triage.ledger.store import WatchedBug


class KnownBugs:
    """The bugs of a ledger, by what another issue may share with them.

    An issue is never taken for itself: its own bug is left out by its name.
    """

    def __init__(self, bugs: Iterable[WatchedBug]) -> None:
        self._bugs = tuple(bugs)
        self._by_script: dict[str, list[WatchedBug]] = {}
        for one in self._bugs:
            for script in one.bug.scripts:
                self._by_script.setdefault(script_identity(script.source), []).append(one)

    def with_script(self, name: str, source: str) -> str | None:
        """Return which bug has this very script, in words; comments and layout do not count."""
        same = self._by_script.get(script_identity(source), ()) if source.strip() else ()
        return next((_words(one) for one in same if one.bug.name != name), None)

    def with_mismatch(self, row: IssueRow) -> str | None:
        """Return which bug an issue's mismatch looks like, in words.

        A signature without an exception says little, so there the scripts have to call the same operators too.
        """
        if not row.signature or row.state not in ("mismatch", "flaky"):
            return None
        for one in self._bugs:
            specific = row.kind in SPECIFIC_KINDS or row.operators == one.bug.operators
            if one.bug.name != row.name and one.bug.fingerprint == row.signature and specific:
                return _words(one)
        return None

    def decisive_signatures(self, name: str) -> tuple[str, ...]:
        """Return the signatures that identify a known bug by themselves: a run that shows one need not go on."""
        found = [one.bug for one in self._bugs if one.bug.kind in SPECIFIC_KINDS and one.bug.name != name]
        return tuple(dict.fromkeys(bug.fingerprint for bug in found))


def script_identity(source: str) -> str:
    """Return a fingerprint of a script's code; of its text where it is not Python."""
    try:
        return fingerprint(ast.unparse(parse_python(source)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return fingerprint(source.strip())


def _words(one: WatchedBug) -> str:
    return f"same as {one_line(one.bug.name, 120)}, {one.standing.words}"
