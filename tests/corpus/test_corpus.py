"""Real bugs over real releases: where each broke and was fixed, as the command finds it, against what is known.

``make test-corpus`` runs it, for hours, and keeps what it came to in ``docs/corpus.md``. A case is a folder with
``repro.py`` and ``truth.json``, which says ``fail``, ``pass`` or ``skip`` of some releases.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from packaging.version import Version
from running import Tool

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "corpus.md"
#: Named by ``make test-corpus`` alone, so that no other run takes hours.
CORPUS = Path(os.environ.get("TORCHBISECT_CORPUS") or "-")
CASES = sorted(path.parent.name for path in CORPUS.glob("*/truth.json"))

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not CASES, reason="make test-corpus names the folder of the corpus, and it has to be there"),
    pytest.mark.timeout(6 * 3600),
]

HEAD = """\
# Real bugs over real releases

Written by `make test-corpus`: each script of the corpus, bisected over all releases of the index from the newest one on
which it is known to fail. *Known* is what single runs on some releases showed; a range that was found agrees if it lies
within one where the known answers change.

| case | known | broke | fixed | agrees | builds asked | minutes |
|---|---|---|---|---|---|---|
"""


@dataclass(frozen=True)
class Case:
    """A script and what is known of it, by release from old to new: ``fail`` or ``pass``."""

    name: str
    script: Path
    known: dict[str, str]
    intervals: str

    @classmethod
    def of(cls, name: str) -> Case:
        told = json.loads((CORPUS / name / "truth.json").read_text())
        known = {release: entry["result"] for release, entry in told["truth"].items() if entry["result"] != "skip"}
        in_order = sorted(known, key=Version)
        return cls(
            name, CORPUS / name / "repro.py", {release: known[release] for release in in_order}, told["intervals"]
        )

    @property
    def failing(self) -> str:
        """The newest release on which it is known to fail."""
        return [release for release, result in self.known.items() if result == "fail"][-1]


def contradictions(case: Case, tested: list[Mapping[str, Any]]) -> list[str]:
    """Builds that were called good where they are known to fail, or bad where they are known to pass."""
    wrong = {("good", "fail"), ("bad", "pass")}
    return [
        f"{row['build']} {row['verdict']}" for row in tested if (row["verdict"], case.known.get(row["build"])) in wrong
    ]


def agrees(case: Case, older: str | None, newer: str | None, kinds: tuple[str, str]) -> bool:
    """Check that a range lies where the known answers change from one kind to the other, open ends included."""
    releases = list(case.known)
    if older is None and newer is None:
        return False
    if older is None:
        return case.known[releases[0]] == kinds[1]
    if newer is None:
        return case.known[releases[-1]] == kinds[0]
    before = [case.known[release] for release in releases if Version(release) <= Version(older)]
    after = [case.known[release] for release in releases if Version(release) >= Version(newer)]
    # One side is empty where the change lies before or after all that is known.
    return (
        len(before) + len(after) == len(releases) and before[-1:] in ([], [kinds[0]]) and after[:1] in ([], [kinds[1]])
    )


@pytest.fixture(scope="module")
def rows() -> Iterator[dict[str, str]]:
    """A line of the page for each case; the page is written when all of them were asked."""
    found: dict[str, str] = {}
    yield found
    if found.keys() >= set(CASES):
        PAGE.write_text(HEAD + "".join(found[name] + "\n" for name in CASES), encoding="utf-8")


@pytest.mark.parametrize("name", CASES)
def test_where_it_broke_and_was_fixed(name: str, cache: Path, rows: dict[str, str]) -> None:
    case = Case.of(name)
    folder = ROOT / "corpus-out" / name  # kept, so that a run that was ended goes on
    folder.mkdir(parents=True, exist_ok=True)
    tool = Tool(folder, cache)
    words = ("bisect", str(case.script), "--torch", case.failing, "--channel", "release", "--timeout", "120")
    done = tool.run(*words, timeout=5 * 3600)
    assert done.returncode == 0, done.stderr
    report = tool.report
    regression, fix = report["bisect"]["regression"], report["bisect"]["fix"]
    broke, fixed = (regression["last_good"], regression["first_bad"]), (fix["last_bad"], fix["first_fixed"])
    wrong = contradictions(case, report["bisect"]["tested"])
    right = not wrong and agrees(case, *broke, ("pass", "fail")) and agrees(case, *fixed, ("fail", "pass"))
    ends = [f"{older or 'before all'} → {newer or 'not yet'}" for older, newer in (broke, fixed)]
    asked = len({row["build"] for row in report["bisect"]["tested"]})
    rows[name] = (
        f"| {name} | {case.intervals} | {ends[0]} | {ends[1]} | {'yes' if right else 'no'} | {asked} "
        f"| {report['seconds'] / 60:.0f} |"
    )
    assert right, (broke, fixed, wrong, case.intervals)
