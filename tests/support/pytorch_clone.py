"""A git repository with PyTorch's branches: main, and nightly whose subjects name the commits on main."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from nightly_index import Change, NightlyIndex

LISTS = "torch/_dynamo/variables/lists.py"
DECOMPOSITIONS = "torch/_decomp/decompositions.py"
COMMITS = 12
CULPRIT = 8


@dataclass
class Clone:
    """A repository with PyTorch's branches.

    Attributes:
        path: its folder.
        culprit: the commit that brings the bug.
        nightlies: the commits on the branch nightly, by the number of the date in the index.
    """

    path: Path
    culprit: str = ""
    nightlies: dict[int, str] = field(default_factory=dict)

    def git(self, *arguments: str) -> str:
        who = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
        return subprocess.run(
            ["git", *who, *arguments], cwd=self.path, capture_output=True, text=True, check=True
        ).stdout.strip()

    def write(self, name: str, text: str, subject: str) -> str:
        place = self.path / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
        self.git("add", "-A")
        self.git("commit", "-q", "-m", subject)
        return self.git("rev-parse", "HEAD")

    def nightly(self, number: int, date: str, main: str) -> None:
        parent = ["-p", "nightly"] if self.nightlies else []
        subject = f"{date} nightly release ({main})"
        self.nightlies[number] = self.git("commit-tree", *parent, f"{main}^{{tree}}", "-m", subject)
        self.git("update-ref", "refs/heads/nightly", self.nightlies[number])


def history_of(change: Change, index: NightlyIndex, path: Path, last_good: int, first_bad: int) -> Clone:
    """Make a repository with commits between two nightlies of an index.

    Commit ``CULPRIT`` brings the change, and the commit two before it can't be imported.

    Args:
        change: the change that the culprit makes.
        index: the index, whose torch provides the sources.
        path: the folder of the repository.
        last_good: the number of the older nightly.
        first_bad: the number of the newer nightly.
    """
    site, date = index.site, index.date
    clone = Clone(path)
    clone.git("init", "-q", "-b", "main")
    clone.write(LISTS, (site / LISTS).read_text(), "Base (#100)")
    base = clone.write(DECOMPOSITIONS, (site / DECOMPOSITIONS).read_text(), "Another (#101)")
    clone.nightly(last_good, str(date(last_good)), base)
    last = base
    for number in range(1, COMMITS + 1):
        name = LISTS if number % 2 == 0 else DECOMPOSITIONS
        text = (path / name).read_text()
        if number == CULPRIT:
            last = clone.culprit = clone.write(name, change.applied(text), "[dynamo] Keep lists as they are (#108)")
        elif number == CULPRIT - 2:
            last = clone.write(name, f"{text}\nraise ImportError('not yet')\n", "[dynamo] Half of a change (#106)")
        elif number == CULPRIT - 1:
            clone.write(LISTS, (site / LISTS).read_text(), "[dynamo] The other half (#107)")
        else:
            last = clone.write(name, f"{text}\n# {number}\n", f"Comment {number} (#{100 + number})")
        if number == 3:
            last = clone.write("aten/src/add.cpp", "// faster\n", "Speed up add (#203)")
    clone.nightly(first_bad, str(date(first_bad)), last)
    return clone
