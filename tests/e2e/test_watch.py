"""The ledger over real releases in their order: each bug's state and edges are those of the truth table."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from nightly_index import DECOMPOSITION, DECOMPOSITION_SCRIPT, DYNAMO, DYNAMO_SCRIPT, NightlyIndex
from packaging.version import Version
from planted import planted
from running import Tool

from torchbisect.triage.database import Database
from torchbisect.triage.ledger.questions import Asks
from torchbisect.triage.ledger.state import Edge, State, is_newer
from torchbisect.triage.ledger.store import Ledger, WatchedBug

pytestmark = pytest.mark.long

WATCHED = Path(__file__).with_name("watched")
OUT = "torchbisect-triage"
#: Named by ``make test-corpus`` alone: seven releases of 6 GB each are installed.
CORPUS = Path(os.environ.get("TORCHBISECT_CORPUS") or "-")
RELEASES = ("2.6.0", "2.7.1", "2.8.0", "2.9.1", "2.10.0")
#: The kind of question with whose first answer, or with that of the middle bug, the watch is killed.
KILLED_AT = {"2.7.1": Asks.EDGE, "2.8.0": Asks.BUG, "2.9.1": Asks.CONTROL}
#: On this torch nothing is compiled, so every script agrees.
BREAK = "OptimizeContext.__call__ = lambda self, function: function"
#: At least two builds at once: the one that is asked, and the last bad one.
LIMIT = ("--cache-limit", os.environ.get("TORCHBISECT_TEST_CACHE_LIMIT", "24GB"))


def known_answers(corpus: Path) -> dict[str, dict[str, str]]:
    """Return what is known of each bug of a corpus, by release."""
    told = {place.parent.name: json.loads(place.read_text())["truth"] for place in sorted(corpus.glob("*/truth.json"))}
    return {f"{name}.py": {release: one["result"] for release, one in truth.items()} for name, truth in told.items()}


def first_failing(truth: dict[str, str]) -> str | None:
    """Return the first release of the ledger on which a bug is known to fail."""
    return next((release for release in RELEASES if truth.get(release) == "fail"), None)


def bugs(tool: Tool) -> dict[str, WatchedBug]:
    with Database(tool.folder / OUT / "triage.sqlite") as database:
        return {one.bug.name: one for one in Ledger(database).bugs()}


def answers(tool: Tool, build: str) -> int:
    with Database(tool.folder / OUT / "triage.sqlite") as database:
        return len(Ledger(database).answers(build=build))


def watch(tool: Tool, *words: str) -> subprocess.CompletedProcess[str]:
    done = tool.run("watch", *LIMIT, *words, OUT, timeout=3000)
    assert done.returncode == 0, done.stderr
    return done


def triage(tool: Tool, *words: str) -> None:
    done = tool.run("triage", "--no-bisect", "--no-minimize", *LIMIT, *words, timeout=3000)
    assert done.returncode == 0, done.stderr


def killed_in_the_middle(tool: Tool, build: str, *words: str, at: str, asks: Asks = Asks.BUG) -> int:
    """Kill a watch with its question ``at`` answered, and return the number of answers that it has kept."""
    answered = re.compile(rf"\b{asks} {at} on torch")
    stop = {"at": answered.search, "by": signal.SIGKILL, "timeout": 3000}
    tool.stopped("watch", *LIMIT, "-v", *words, OUT, **stop)
    return answers(tool, build)


def expected_state(truth: dict[str, str], asked: tuple[str, ...]) -> State:
    if truth[asked[-1]] == "pass":
        return State.FIXED
    return State.REGRESSED if any(truth[build] == "pass" for build in asked) else State.REPRODUCES


def check_edge(edge: Edge, truth: dict[str, str], asked: tuple[str, ...]) -> None:
    """Check that no release of the truth table between the last two that were asked contradicts an edge."""
    assert edge.searched
    older, newer = ("fail", "pass") if edge.kind.value == "fix" else ("pass", "fail")
    start = max((build for build in asked if truth[build] == older and not is_newer(build, edge.before)), key=Version)
    end = min((build for build in asked if truth[build] == newer and not is_newer(edge.after, build)), key=Version)
    for build, result in truth.items():
        if not is_newer(start, build) and not is_newer(build, edge.before):
            assert result == older, (build, edge)
        if not is_newer(edge.after, build) and not is_newer(build, end):
            assert result == newer, (build, edge)


@pytest.mark.skipif(not any(CORPUS.glob("*/truth.json")), reason="installs seven releases of torch: make test-corpus")
@pytest.mark.timeout(7200)
def test_five_releases_in_order(tool: Tool) -> None:
    """Every bug of the corpus comes into the ledger with the first of the releases on which it fails."""
    known = known_answers(CORPUS)
    came = {name: first for name, truth in known.items() if (first := first_failing(truth)) is not None}
    for number, release in enumerate(RELEASES):
        scripts = tool.folder / f"scripts-{release}"
        scripts.mkdir()
        for name in (name for name, first in came.items() if first == release):
            shutil.copy(CORPUS / name.removesuffix(".py") / "repro.py", scripts / name)
        if any(scripts.iterdir()):
            triage(tool, "--torch", release, "--out", OUT, scripts.name)
        count, kept = len(bugs(tool)), 0
        if release in KILLED_AT:
            middle = KILLED_AT[release] is Asks.BUG
            at = sorted(bugs(tool))[count // 2] if middle else r"\S+"
            kept = killed_in_the_middle(tool, release, "--torch", release, at=at, asks=KILLED_AT[release])
            assert 0 < kept < count if middle else kept == count, "the kill was at another moment"
        done = watch(tool, "--torch", release)
        assert f"{len(bugs(tool))} bugs, {len(bugs(tool)) - kept} to ask" in done.stderr
        for name, one in bugs(tool).items():
            asked = RELEASES[RELEASES.index(came[name]) : number + 1]
            assert one.standing.state is expected_state(known[name], asked), (release, name, one.standing)
            if one.standing.edge is not None:
                check_edge(one.standing.edge, known[name], asked)
    assert set(bugs(tool)) == set(came)

    before = bugs(tool)
    again = watch(tool, "--torch", RELEASES[-1])
    assert "0 to ask" in again.stderr
    assert "0 questions in this run" in again.stdout
    assert bugs(tool) == before

    python = planted(tool.folder / "broken", "2.10.1", BREAK)
    done = watch(tool, "--python", str(python), "--torch", "installed")
    assert "torch 2.10.1 fails its health check" in done.stderr
    assert (bugs(tool), answers(tool, "2.10.1")) == (before, 0)


@pytest.mark.torch
@pytest.mark.timeout(1800)
def test_a_bug_goes_between_two_nightlies(tool: Tool) -> None:
    """A kill in the middle loses no answer, and the nightly between the two that were asked is searched."""
    index = NightlyIndex(count=8, changes={DYNAMO: (0, 2), DECOMPOSITION: (0, 8)})
    where = ("--channel", "nightly", "--index-url", index.start())
    (tool.folder / "scripts").mkdir()
    (tool.folder / "scripts" / "dynamo.py").write_text(DYNAMO_SCRIPT)
    (tool.folder / "scripts" / "gate.py").write_text(DECOMPOSITION_SCRIPT)
    date = [index.date(number).isoformat() for number in range(4)]
    name = [index.version(number).partition("+")[0] for number in range(4)]

    def standing() -> tuple[State, str]:
        known = bugs(tool)
        assert known["gate.py"].standing.state is State.REPRODUCES
        return known["dynamo.py"].standing.state, known["dynamo.py"].standing.words

    try:
        triage(tool, *where, "--torch", date[0], "scripts")
        watch(tool, *where, "--torch", date[1])
        assert standing() == (State.REPRODUCES, f"still in {name[1]}")
        # The line of the second answer may come just before that answer is stored.
        kept = killed_in_the_middle(tool, name[3], *where, "--torch", date[3], at="gate.py")
        assert kept > 0
        assert standing() == (State.REPRODUCES, f"still in {name[1]}")
        assert f"2 bugs, {2 - kept} to ask" in watch(tool, *where, "--torch", date[3]).stderr
        assert standing() == (State.FIXED, f"fixed in {name[2]}")
    finally:
        index.stop()


@pytest.mark.torch
@pytest.mark.timeout(1800)
def test_a_planted_broken_build_changes_no_state(tool: Tool) -> None:
    """Nothing is compiled on one copy of torch, so every script agrees there; on another one all is as before."""
    scripts = tool.folder / "scripts"
    scripts.mkdir()
    shutil.copy(WATCHED / "except-runtimeerror.py", scripts)
    done = tool.run("triage", "--no-bisect", "--no-minimize", "--torch", "installed", "scripts")
    assert done.returncode == 0, done.stderr
    python = planted(tool.folder / "broken", "2.13.8", BREAK)
    told = subprocess.run(
        [str(python), "-c", "import torch; print(torch.__version__)"], capture_output=True, text=True, check=True
    )
    assert told.stdout.strip() == "2.13.8"
    done = watch(tool, "--python", str(python), "--torch", "installed")
    assert "torch 2.13.8 fails its health check" in done.stderr
    (one,) = bugs(tool).values()
    assert one.standing.state is State.REPRODUCES
    assert one.standing.newest == "2.13.0"
    assert answers(tool, "2.13.8") == 0
    assert "2.13.8" in (tool.folder / OUT / "watch.html").read_text()

    python = planted(tool.folder / "healthy", "2.13.9")
    watch(tool, "--python", str(python), "--torch", "installed")
    (one,) = bugs(tool).values()
    assert (one.standing.state, one.standing.newest) == (State.REPRODUCES, "2.13.9")
