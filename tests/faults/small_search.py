"""A search with a test of the user's own, in real environments of small wheels from an index over HTTP."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from torchbisect.cli.commands import main
from torchbisect.containers.docker import environments  # noqa: F401  # imported before the fork
from torchbisect.pipeline.stages import commits  # noqa: F401

TEST = 'case "$TORCHBISECT_TORCH_VERSION" in 2.8*) exit 1;; esac; exit 0'


def prepare(folder: Path) -> tuple[Callable[[Path], int], Callable[[Path], dict[str, Any]]]:
    """Return the command, and a function that reads what it left in its folder."""
    (folder / "repro.py").write_text("print('one')\n")

    def run(here: Path) -> int:
        os.chdir(folder)
        words = ["bisect", "repro.py", "--test", TEST, "--torch", "2.8.0", "--find", "regression"]
        words += ["--channel", "release", "--cache-dir", str(here / "cache"), "--out", str(here / "out")]
        main(words, prog_name="torchbisect")
        return 0

    return run, state


def state(here: Path) -> dict[str, Any]:
    """Return the answer on disk and everything that is half-made."""
    out, cache = here / "out", here / "cache"
    report = json.loads((out / "report.json").read_text()) if (out / "report.json").exists() else None
    found = report and report.get("bisect")
    venvs = sorted((cache / "venvs").glob("*")) if cache.exists() else []
    return {
        "answer": [report["state"], report["verdict"], found and found["regression"]["words"]] if report else None,
        "temporary": [path.name for path in (here / "tmp").glob("*")],
        "unfinished": [path.name for path in [*out.glob(".*.tmp"), *(cache / "making").glob("*")]],
        "broken": [path.name for path in venvs if not (path / "torchbisect-facts.json").read_text()],
        "venvs": len(venvs),
    }
