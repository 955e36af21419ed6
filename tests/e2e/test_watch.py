"""The ledger over real releases in their order: each bug's state and edges are those of the truth table."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest
from packaging.version import Version
from running import Tool

from torchbisect.triage.database import Database
from torchbisect.triage.ledger.state import Edge, State, is_newer
from torchbisect.triage.ledger.store import Ledger, WatchedBug

pytestmark = pytest.mark.long

WATCHED = Path(__file__).with_name("watched")
OUT = "torchbisect-triage"
RELEASES = ("2.6.0", "2.8.0", "2.9.1", "2.10.0", "2.13.0")
#: At least two builds at once: the one that is asked, and the last bad one.
LIMIT = ("--cache-limit", "24GB")
TRUTH: dict[str, dict[str, str]] = json.loads((WATCHED / "truth.json").read_text())


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


@pytest.mark.skipif(
    "TORCHBISECT_CORPUS" not in os.environ, reason="installs five releases of torch and more: make test-corpus"
)
@pytest.mark.timeout(7200)
def test_five_releases_in_order(tool: Tool) -> None:
    scripts = tool.folder / "scripts"
    shutil.copytree(WATCHED, scripts)
    quick = ("--no-bisect", "--no-minimize", "--torch", RELEASES[0], *LIMIT)
    done = tool.run("triage", *quick, "scripts", timeout=3000)
    assert done.returncode == 0, done.stderr

    for number, release in enumerate(RELEASES, 1):
        if release == "2.9.1":
            tool.stopped(
                "watch",
                *LIMIT,
                "-v",
                "--torch",
                release,
                OUT,
                at=lambda line: "bug detach-inplace.py" in line,
                by=signal.SIGKILL,
            )
            kept = answers(tool, release)
            assert 0 < kept < len(TRUTH), "the kill was not in the middle"
            done = watch(tool, "--torch", release)
            assert f"{len(TRUTH)} bugs, {len(TRUTH) - kept} to ask" in done.stderr
        else:
            watch(tool, "--torch", release)
        for name, one in bugs(tool).items():
            assert one.standing.state is expected_state(TRUTH[name], RELEASES[:number]), (release, name, one.standing)
            if one.standing.edge is not None:
                check_edge(one.standing.edge, TRUTH[name], RELEASES[:number])

    before = bugs(tool)
    again = watch(tool, "--torch", RELEASES[-1])
    assert "0 to ask" in again.stderr
    assert "0 questions in this run" in again.stdout
    assert bugs(tool) == before


def planted(folder: Path, version: str, patch: str = "") -> Path:
    """Make a Python with a copy of the installed torch of another version, to whose compiler ``patch`` is added."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    here = Path(sysconfig.get_path("purelib"))
    place = next(folder.glob("lib/python*/site-packages"))
    for found in (here / "torch", *here.glob("torch-*.dist-info")):
        name = found.name if found.name == "torch" else f"torch-{version}.dist-info"
        # Hard links: a copy is 700 MB.
        subprocess.run(["cp", "-al", str(found), str(place / name)], check=True)
    (place / "rest.pth").write_text(f"{here}\n")
    for path, change in (
        (place / "torch/version.py", lambda text: text.replace("__version__ = '2", f"__version__ = '{version}' or '2")),
        (place / "torch/_dynamo/eval_frame.py", lambda text: f"{text}\n{patch}\n"),
        (place / f"torch-{version}.dist-info/METADATA", _with_version(version)),
    ):
        text = change(path.read_text())
        path.unlink()
        path.write_text(text)
    return folder / "bin" / "python"


def _with_version(version: str) -> Any:
    return lambda text: "\n".join(
        f"Version: {version}" if line.startswith("Version: ") else line for line in text.split("\n")
    )


@pytest.mark.torch
@pytest.mark.timeout(1800)
def test_a_planted_broken_build_changes_no_state(tool: Tool) -> None:
    """Nothing is compiled on one copy of torch, so every script agrees there; on another one all is as before."""
    scripts = tool.folder / "scripts"
    scripts.mkdir()
    shutil.copy(WATCHED / "except-runtimeerror.py", scripts)
    done = tool.run("triage", "--no-bisect", "--no-minimize", "--torch", "installed", "scripts")
    assert done.returncode == 0, done.stderr
    python = planted(tool.folder / "broken", "2.13.8", "OptimizeContext.__call__ = lambda self, function: function")
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
