"""A whole run with all its stages against a table of answers, which takes a fraction of a second."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from answer_table import Table
from table_run import run_in

from torchbisect.containers.leftovers import sweep
from torchbisect.core.errors import TorchbisectError

RELEASES = {"2.6.0": [], "2.7.0": ["one"], "2.8.0": ["one"], "2.9.0": []}


def prepare(folder: Path) -> tuple[Callable[[Path], int], Callable[[Path], dict[str, Any]]]:
    """Return the run, and a function that reads what it left in its folder."""

    def run(here: Path) -> int:
        try:
            sweep()
            done = run_in(here, Table(RELEASES), save_trajectory=True)
            if done.error is not None:
                raise done.error
        except TorchbisectError as error:
            click.echo(f"torchbisect: {error}", file=sys.stderr)
            return int(error.exit_code)
        return int(done.code or 0)

    return run, state


def state(here: Path) -> dict[str, Any]:
    """Return the answer on disk and everything that is half-made."""
    out = here / "out"
    report = json.loads((out / "report.json").read_text()) if (out / "report.json").exists() else None
    whole = report and report["bisect"] and report["minimal"]
    words = [report["bisect"][name]["words"] for name in ("regression", "fix")] if whole else []
    return {
        "answer": [report["state"], report["verdict"], *words, (out / "minimal.py").read_text()] if whole else None,
        "temporary": [path.name for path in (here / "tmp").glob("*")],
        "unfinished": [path.name for path in out.rglob(".*.tmp")],
        "broken": [],
        "venvs": 0,
    }
