"""From a nightly to the commit, by the command as it is typed: over an index of real torch with a planted bug."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from nightly_index import DYNAMO, DYNAMO_SCRIPT, NightlyIndex
from pytorch_clone import Clone, history_of
from running import Tool

pytestmark = pytest.mark.e2e

GOOD, BAD, COUNT = 2, 4, 7


@dataclass(frozen=True)
class World:
    """The index's address, the index, and the clone."""

    url: str
    index: NightlyIndex
    clone: Clone


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """Seven dates: the fourth isn't there, and the fifth brings the bug."""
    (tmp_path / "pytorch").mkdir()
    clone = history_of(DYNAMO, NightlyIndex(count=COUNT), tmp_path / "pytorch", GOOD, BAD)
    index = NightlyIndex(
        count=COUNT, changes={DYNAMO: (BAD, COUNT)}, missing=frozenset({GOOD + 1}), git_versions=clone.nightlies
    )
    yield World(index.start(), index, clone)
    index.stop()


def test_the_date_and_the_commit_are_named(tmp_path: Path, world: World) -> None:
    tool = Tool(tmp_path, tmp_path / "cache")
    tool.write(DYNAMO_SCRIPT)
    newest = world.index.date(COUNT - 1).isoformat()
    where = ("--channel", "nightly", "--channel", "commit", "--index-url", world.url, "--git", str(world.clone.path))
    done = tool.run("bisect", "repro.py", "--torch", newest, "--find", "regression", *where)
    assert done.returncode == 0, done.stderr
    regression = tool.report["bisect"]["regression"]
    names = [world.index.version(number).partition("+")[0] for number in (GOOD, BAD)]
    assert [regression["last_good"], regression["first_bad"]] == names, done.stderr
    assert regression["suspects"][0]["commit"] == world.clone.culprit, done.stderr
