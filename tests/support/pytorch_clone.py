"""A git repository with PyTorch's branches: main, and nightly whose subjects name the commits on main."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from nightly_index import Change, NightlyIndex

LISTS = "torch/_dynamo/variables/lists.py"
DECOMPOSITIONS = "torch/_decomp/decompositions.py"
COMMITS = 12
CULPRIT = 8
BROKEN_IMPORT = "\nraise ImportError('not yet')\n"


@dataclass
class Clone:
    """A repository with PyTorch's branches.

    Attributes:
        path: its folder.
        shas: its commits, oldest first, without those of the branch nightly.
        culprit: the commit that brings the bug.
        nightlies: the commits on the branch nightly, by the number of the date in the index.
    """

    path: Path
    shas: list[str] = field(default_factory=list)
    culprit: str = ""
    nightlies: dict[int, str] = field(default_factory=dict)
    _clock: int = 1_786_000_000

    def git(self, *arguments: str, text: str | None = None) -> str:
        """Run git with a clock that goes on by a minute each time; return its output."""
        self._clock += 60
        person = {f"GIT_{role}_{key}": "a@b.c" for role in ("AUTHOR", "COMMITTER") for key in ("NAME", "EMAIL")}
        date = {f"GIT_{role}_DATE": f"{self._clock} +0000" for role in ("AUTHOR", "COMMITTER")}
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.path), **person, **date}
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.path, input=text, capture_output=True, text=True, check=True, env=environment,
        )  # fmt: skip
        return done.stdout.strip()

    def commit(self, message: str, files: dict[str, str | None]) -> str:
        """Commit changed files, by path; ``None`` removes a file."""
        for name, text in files.items():
            file = self.path / name
            if text is None:
                file.unlink()
            else:
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text)
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-F", "-", text=message)
        self.shas.append(self.git("rev-parse", "HEAD"))
        return self.shas[-1]

    def nightly(self, date: str, main: str) -> str:
        """Commit a nightly as test-infra's trigger-nightly does: main's tree on top of the nightly before."""
        parent = ["-p", "nightly"] if self.git("branch", "--list", "nightly") else []
        sha = self.git("commit-tree", *parent, f"{main}^{{tree}}", "-m", f"{date} nightly release ({main})")
        self.git("update-ref", "refs/heads/nightly", sha)
        return sha


def history_of(
    change: Change,
    index: NightlyIndex,
    path: Path,
    first: int,
    last: int,
    *,
    fix: bool = False,
    repaired: int = CULPRIT - 1,
) -> Clone:
    """Make a repository with twelve commits, and one of C++, between two nightlies of an index.

    Args:
        change: the change that commit ``CULPRIT`` makes, in a file that the even commits are about.
        index: the index, whose torch provides the sources.
        path: the folder of the repository.
        first: the number of the older nightly.
        last: the number of the newer nightly.
        fix: the history begins with the change, and ``CULPRIT`` takes it back.
        repaired: the commit that makes torch work again, which no build imports from two commits before the culprit on.
    """
    site, date = index.site, index.date
    old, new = (change.new, change.old) if fix else (change.old, change.new)
    clone = Clone(path)
    clone.git("init", "-q", "-b", "main")
    clone.commit("Base (#100)", {LISTS: (site / LISTS).read_text().replace(change.old, old)})
    base = clone.commit("Another (#101)", {DECOMPOSITIONS: (site / DECOMPOSITIONS).read_text()})
    clone.nightlies[first] = clone.nightly(str(date(first)), base)
    sha = base
    for number in range(1, COMMITS + 1):
        name = LISTS if number % 2 == 0 else DECOMPOSITIONS
        text = (path / name).read_text()
        if number == CULPRIT:
            sha = clone.culprit = clone.commit("[dynamo] Keep lists as they are (#108)", {name: text.replace(old, new)})
        elif number == CULPRIT - 2:
            sha = clone.commit("[dynamo] Half of a change (#106)", {name: f"{text}{BROKEN_IMPORT}"})
        elif number == repaired:
            whole = (path / LISTS).read_text().replace(BROKEN_IMPORT, "")
            sha = clone.commit(f"[dynamo] The other half (#{100 + number})", {LISTS: whole})
        else:
            sha = clone.commit(f"Comment {number} (#{100 + number})", {name: f"{text}\n# {number}\n"})
        if number == 3:
            sha = clone.commit("Speed up add (#203)", {"aten/src/add.cpp": "// faster\n"})
    clone.nightlies[last] = clone.nightly(str(date(last)), sha)
    return clone
