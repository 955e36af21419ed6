"""Render the ledger for a browser: the grid of bugs and builds, and a page a bug with its history."""

from __future__ import annotations

import base64
import hashlib
import importlib.resources
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from markupsafe import Markup
from packaging.version import Version

from torchbisect.core.printable import counted, one_line
from torchbisect.core.scrub import scrub
from torchbisect.reports.render.html import template
from torchbisect.reports.sanitize import short_line
from torchbisect.triage.ledger.state import Control, Seen, State
from torchbisect.triage.ledger.store import AskedBuild, Change, Ledger, Run, StoredAnswer, WatchedBug
from torchbisect.triage.ledger.watch import BUGS, bug_folder

PAGE, FEED = "watch.html", "watch.xml"
#: The builds of the grid, the newest ones; a bug's own page has all.
MOST_BUILDS = 60
SIGNS = {
    Seen.SAME: ("F", "shows it"),
    Seen.NONE: ("·", "agrees"),
    Seen.OTHER: ("≠", "another mismatch"),
    Seen.SOME: ("~", "some runs show it"),
    Seen.UNTESTABLE: ("?", "no evidence"),
}
_ADDRESS = re.compile(r"https://[A-Za-z0-9.-]+/[\w./#?=&%+~-]*")


@dataclass(frozen=True)
class History:
    """A ledger, with the answers of its newest builds.

    Attributes:
        builds: the builds with an answer or a failed health check, oldest first; ``MOST_BUILDS`` at most.
        answers: their answers.
        changes: all changes of state, the newest first.
    """

    bugs: tuple[WatchedBug, ...]
    builds: tuple[AskedBuild, ...]
    answers: tuple[StoredAnswer, ...]
    changes: tuple[Change, ...]
    runs: tuple[Run, ...]

    @classmethod
    def of(cls, ledger: Ledger) -> History:
        """Read a ledger. Years of answers about thousands of bugs would not fit into memory."""
        known = {one.name: one for one in ledger.builds()}
        for name, day in ledger.first_days().items():
            known.setdefault(name, AskedBuild(name, "", day))
        builds = tuple(sorted(known.values(), key=lambda build: Version(build.name)))[-MOST_BUILDS:]
        answers = ledger.answers(builds=[build.name for build in builds])
        return cls(ledger.bugs(), builds, answers, ledger.changes(), ledger.runs())

    @property
    def last_changes(self) -> tuple[Change, ...]:
        """The changes since the end of the run before the last one that asked anything."""
        finished = [run.number for run in self.runs if run.finished]
        before = finished[-2] if len(finished) > 1 else 0
        return tuple(change for change in self.changes if change.run > before)


def grid_page(history: History) -> str:
    """Render the page of all bugs: one self-contained file whose policy allows its own script and no other."""
    builds = history.builds
    cells: dict[str, dict[str, StoredAnswer]] = defaultdict(dict)
    for answer in history.answers:
        cells[answer.bug][answer.sighting.build] = answer
    changes = history.last_changes
    changed = {one.bug for one in changes}
    counts = Counter(one.standing.state for one in history.bugs)
    script = importlib.resources.files("torchbisect.triage").joinpath("templates/watch.js").read_text("utf-8")
    return template("watch.html.j2", "torchbisect.triage").render(
        digest=Markup(base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()),
        script=Markup(script),
        feed=FEED,
        run=_last_run(history.runs),
        counts=[(state.value, counts[state]) for state in State if counts[state]],
        legend=[{"kind": seen.value, "sign": sign, "words": words} for seen, (sign, words) in SIGNS.items()],
        builds=builds,
        broken=[{"name": one.name, "reason": _line(one.reason, 300)} for one in reversed(builds) if not one.healthy],
        changes=[{**_change(one), "page": _page(one.bug), "name": one_line(one.bug, 120)} for one in changes],
        rows=[
            _row(number, one, cells[one.bug.name], builds, changed)
            for number, one in enumerate(sorted(history.bugs, key=_order), 1)
        ],
    )


def _order(one: WatchedBug) -> int:
    return list(State).index(one.standing.state)


def _last_run(runs: Sequence[Run]) -> str:
    if not runs:
        return ""
    last = runs[-1]
    asked = counted(last.asked, "question")
    return f"The last run began on {last.started[:10]} and asked {asked} in {last.seconds:.0f} s."


def _row(
    number: int,
    one: WatchedBug,
    answers: Mapping[str, StoredAnswer],
    builds: Sequence[AskedBuild],
    changed: set[str],
) -> dict[str, Any]:
    bug = one.bug
    return {
        "id": f"bug-{number}",
        "name": one_line(bug.name, 120),
        "page": _page(bug.name),
        "url": _address(bug.url),
        "summary": _line(bug.summary, 160),
        "state": one.standing.state.value,
        "words": _line(one.standing.words, 200),
        "changed": "yes" if bug.name in changed else "no",
        "cells": [_cell(answers.get(build.name), build) for build in builds],
    }


def _cell(answer: StoredAnswer | None, build: AskedBuild) -> dict[str, str]:
    if not build.healthy:
        return {"kind": "broken", "sign": "", "words": ""}
    if answer is None:
        return {"kind": "", "sign": "", "words": ""}
    sign, words = SIGNS[answer.sighting.seen]
    if answer.sighting.seen in (Seen.SAME, Seen.NONE):
        return {"kind": answer.sighting.seen.value, "sign": sign, "words": ""}
    return {"kind": answer.sighting.seen.value, "sign": sign, "words": _line(f"{words}: {answer.sighting.reason}", 120)}


def bug_page(one: WatchedBug, answers: Sequence[StoredAnswer], changes: Sequence[Change]) -> str:
    """Render the page of one bug.

    Args:
        answers: its answers, in any order.
        changes: the changes of its state, the newest first.
    """
    bug, standing = one.bug, one.standing
    newest_first = sorted(answers, key=lambda answer: Version(answer.sighting.build), reverse=True)
    return template("watched_bug.html.j2", "torchbisect.triage").render(
        home=PAGE,
        name=one_line(bug.name, 120),
        title=_line(bug.title, 160),
        url=_address(bug.url),
        summary=_line(bug.summary, 300),
        state=standing.state.value,
        words=_line(standing.words, 200),
        reason=_line(standing.reason, 300) if standing.reason not in standing.words else "",
        note=_line(standing.edge.note, 300) if standing.edge else "",
        added=one.added,
        reported=one.reported,
        changes=[_change(change) for change in reversed(changes)],
        answers=[_answer(answer) for answer in newest_first],
        scripts=[{"name": script.name, "source": scrub(script.source)} for script in bug.scripts],
    )


def _answer(answer: StoredAnswer) -> dict[str, str]:
    sighting = answer.sighting
    sign, words = SIGNS[sighting.seen]
    control = "" if sighting.control is Control.NOT_ASKED else f"last bad build in the same run: {sighting.control}"
    return {
        "build": sighting.build,
        "kind": sighting.seen.value,
        "sign": sign,
        "answer": words,
        "reason": _line(sighting.reason, 300),
        "control": _line(f"{control} ({sighting.control_reason})", 300) if control else "",
        "day": sighting.day,
        "seconds": f"{answer.seconds:.1f}",
    }


def _change(one: Change) -> dict[str, str]:
    return {
        "time": one.time[:16].replace("T", " "),
        "build": one.build,
        "before": one.before,
        "after": one.after,
        "words": _line(one.words, 200),
    }


def _page(name: str) -> str:
    return f"{BUGS}/{quote(bug_folder(name))}/index.html"


def _address(url: str) -> str:
    return url if _ADDRESS.fullmatch(url) else ""


def _line(text: str, limit: int) -> str:
    return short_line(scrub(text), limit)
