"""The commands that run no script: show a report again, list builds, look at the machine."""

from __future__ import annotations

import json
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from torchbisect.cli.channels import Channels
from torchbisect.cli.display import Display
from torchbisect.cli.exits import Exit
from torchbisect.cli.options import Options
from torchbisect.containers.errors import InputError
from torchbisect.containers.interpreters import Interpreter
from torchbisect.containers.machine import checks
from torchbisect.reports import files
from torchbisect.reports.terminal import summary


def render(folder: Path, as_json: bool) -> None:
    """Write what is rendered from ``report.json`` again, and show it.

    Raises:
        InputError: there is no report in the folder that can be read.
    """
    report = files.load(folder)
    written = files.write(report, folder)
    if as_json:
        click.echo(json.dumps(report.to_json(), indent=2))
    else:
        Console(highlight=False, soft_wrap=True).print(summary(report, written))


def list_builds(options: Options, channel: str, as_json: bool) -> None:
    """Print the builds of a channel, oldest first, then what was left out and why.

    Raises:
        InputError: the channel has no list, or the Python isn't one.
        IndexUnreachable: the index did not answer.
    """
    if channel == "commit":
        raise InputError("--channel commit: commits are not listed, git log lists them; choose release or nightly")
    channels = Channels(options, Display(), Interpreter.of(options.python))
    listing = channels.releases if channel == "release" else channels.listed_nightlies
    if as_json:
        builds = [
            {"build": build.name, "version": build.version, "date": build.date.isoformat() if build.date else None}
            for build in listing.builds
        ]
        left_out = [{"version": one.version, "reason": one.reason} for one in listing.left_out]
        click.echo(json.dumps({"builds": builds, "left_out": left_out}, indent=2))
        return
    for build in listing.builds:
        click.echo(f"{build.name:12}" + (f" {build.date.isoformat()}" if build.date else ""))
    for one in listing.left_out:
        click.echo(f"left out {one}", err=True)


def doctor(python: str, cache_dir: Path | None) -> int:
    """Print what was found on this machine; the exit code says whether the main job can be done here."""
    table = Table(box=None, show_header=False, pad_edge=False)
    found = checks(python, cache=cache_dir)
    for check in found:
        table.add_row("ok" if check.ok else "!!", check.name, check.detail)
        if not check.ok and check.advice:
            table.add_row("", "", f"→ {check.advice}")
    Console(highlight=False, soft_wrap=True).print(table)
    return Exit.FINISHED if all(check.ok for check in found) else Exit.MACHINE
