"""Say a change of state in the comment that torchbisect has under an issue; nothing is closed or labelled."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from torchbisect.core.errors import InputError
from torchbisect.core.retry import Notify
from torchbisect.reports import files
from torchbisect.reports.render import markdown
from torchbisect.reports.sanitize import prose
from torchbisect.triage.github import ACTIONS_BOT, API, GitHub, Reference
from torchbisect.triage.issue_input import reference_in
from torchbisect.triage.ledger.store import Change, Ledger, WatchedBug


def comment_changes(ledger: Ledger, reports: Mapping[str, Path], notify: Notify) -> int:
    """Write or edit the comment of each issue whose state has changed since its last one; return their number.

    The token is read from ``GH_TOKEN``, and the account that it writes as from ``TORCHBISECT_ACCOUNT``.

    Args:
        reports: the folders of reports by the names of their bugs.
        notify: is told of each issue where no comment could be written; the next run tries again.

    Raises:
        InputError: there is no token.
        MachineError: GitHub does not answer.
    """
    changed = _to_say(ledger.bugs(), ledger.changes())
    if not changed:
        return 0
    token = os.environ.get("GH_TOKEN")
    if not token:
        raise InputError("--comment needs a token that may write comments: set GH_TOKEN")
    author = os.environ.get("TORCHBISECT_ACCOUNT", ACTIONS_BOT)
    written = 0
    with GitHub(token, base=os.environ.get("GITHUB_API_URL", API), notify=notify) as github:
        for reference, one in changed:
            try:
                text = comment_text(one, reports.get(one.bug.name))
                github.comment_once(reference, text, markdown.FIRST_LINE, author)
            except InputError as error:
                notify(f"{one.bug.name} has no comment: {error}")
            else:
                ledger.mark_commented(one.bug.name)
                written += 1
    return written


def _to_say(bugs: Iterable[WatchedBug], changes: Iterable[Change]) -> list[tuple[Reference, WatchedBug]]:
    unsaid = {change.bug for change in changes if not change.commented}
    found = [(reference_in(one.bug.url or one.bug.name), one) for one in bugs if one.bug.name in unsaid]
    return [(reference, one) for reference, one in found if reference is not None]


def comment_text(one: WatchedBug, folder: Path | None) -> str:
    """Return the comment of a bug: the line of its present state, then its report as it is commented otherwise."""
    standing = one.standing
    line = f"**Watched by torchbisect: {prose(standing.words)}.** Last asked on torch {prose(standing.newest)}."
    if folder is None or not (folder / files.JSON).is_file():
        return f"{markdown.FIRST_LINE}\n\n{line}\n"
    # Render the report again: its report.md may come from a job that ran a stranger's code.
    text = markdown.render(files.load(folder), markdown.LIMIT - len(line.encode()) - 8)
    first, second, rest = text.split("\n", 2)
    return f"{first}\n{second}\n\n{line}\n\n{rest}"
