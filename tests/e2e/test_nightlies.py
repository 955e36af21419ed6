"""From a nightly to the commit, with an index of real torch in which a bug is planted."""

from __future__ import annotations

import os
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from nightly_index import DYNAMO, DYNAMO_SCRIPT, NightlyIndex
from pytorch_clone import Clone, history_of
from running import Tool

pytestmark = pytest.mark.long

GOOD, BAD, COUNT = 7, 9, 14


@dataclass(frozen=True)
class World:
    """The index's address, the index, and the clone."""

    url: str
    index: NightlyIndex
    clone: Clone

    def name(self, number: int) -> str:
        """Return the name of a date's nightly in a report."""
        return self.index.version(number).partition("+")[0]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """Fourteen dates: the ninth is missing, the tenth has the bug, and the index does not answer at first."""
    (tmp_path / "pytorch").mkdir()
    index = NightlyIndex(count=COUNT, changes={DYNAMO: (BAD, COUNT)}, missing=frozenset({GOOD + 1}), down=2)
    clone = history_of(DYNAMO, index, tmp_path / "pytorch", GOOD, BAD)
    index.git_versions.update(clone.nightlies)
    yield World(index.start(), index, clone)
    index.stop()


@contextmanager
def small_disk(place: Path) -> Iterator[bool]:
    """Mount a disk of 300 MB at ``place`` and yield True; yield False where mounting is not permitted."""
    place.mkdir()
    if os.geteuid() != 0:
        yield False
        return
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=300m", "tmpfs", place], check=True)
    try:
        yield True
    finally:
        subprocess.run(["umount", "-l", place], check=True)


def test_the_date_and_the_commit_are_named(tmp_path: Path, world: World) -> None:
    """The disk is full at first. Builds between the ends are asked by partial wheels, and nothing is asked twice."""
    newest = world.index.date(COUNT - 1).isoformat()
    where = ("--channel", "nightly", "--channel", "commit", "--index-url", world.url, "--git", str(world.clone.path))
    words = ("run", "repro.py", "--no-minimize", "--torch", newest, "--find", "regression", *where)
    with small_disk(tmp_path / "cache") as small:
        tool = Tool(tmp_path, tmp_path / "cache")
        tool.write(DYNAMO_SCRIPT)
        if small:
            done = tool.run(*words)
            assert done.returncode == 5, done.stderr
            lines = [line for line in done.stderr.splitlines() if line.startswith("torchbisect:")]
            assert len(lines) == 1, done.stderr
            assert "is full" in lines[0]
            assert "503" in done.stderr, "the index was down at first, and that was said"
            subprocess.run(["mount", "-o", "remount,size=6g", tool.cache], check=True)
        done = tool.run(*words)
        assert done.returncode == 0, done.stderr
        installed = {path.name for path in tool.cache.glob("venvs/*")}

    found = tool.report["bisect"]
    regression = found["regression"]
    assert [regression["last_good"], regression["first_bad"]] == [world.name(GOOD), world.name(BAD)], done.stderr
    assert regression["suspects"][0]["commit"] == world.clone.culprit, done.stderr
    reverted = [(one["commit"], one["build"], one["passes"]) for one in regression["proofs"]]
    assert reverted == [(world.clone.culprit, world.name(number), True) for number in (BAD, COUNT - 1)], done.stderr
    assert f"on `{world.name(BAD)}` makes it pass" in (tool.out / "report.md").read_text()
    assert [key for key, times in Counter(tool.asked).items() if times > 1] == []

    assert any("by their Python alone" in notice for notice in found["notices"]), found["notices"]
    assert {row["build"] for row in found["tested"]} > {world.name(GOOD), world.name(BAD)}
    assert len(installed) < len({row["build"] for row in found["tested"]}), "some were asked without an install"
