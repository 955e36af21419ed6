"""The commands that run no script: report, builds, and the option ``--plan``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click
from rich.cells import cell_len, set_cell_size
from rich.console import Console

from torchbisect.core.build import Channel
from torchbisect.core.command_line import say
from torchbisect.core.errors import Exit, InputError
from torchbisect.pipeline.build_sources import LocalBuildSources
from torchbisect.pipeline.local_provider import LocalProvider
from torchbisect.pipeline.options import Options
from torchbisect.pipeline.progress import Display
from torchbisect.pipeline.script import open_script
from torchbisect.pipeline.search_plan import plan_searches
from torchbisect.reports import files
from torchbisect.reports.model.report import Report
from torchbisect.reports.render.terminal import summary


def render(folder: Path, as_json: bool) -> None:
    """Render ``report.json`` again, and print the summary. Raises ``InputError`` if there is no readable report."""
    report = files.load(folder)
    show_report(report, files.write(report, folder), as_json=as_json)


def show_report(report: Report, written: Sequence[Path], *, as_json: bool, hint: str = "") -> None:
    """Print a report: as JSON, or as a summary with the files that were written and the next step."""
    if as_json:
        click.echo(json.dumps(report.to_json(), indent=2))
    else:
        Console(highlight=False, soft_wrap=True).print(summary(report, written, hint=hint))


def list_builds(options: Options, channel: str, as_json: bool) -> None:
    """Print the builds of a channel, oldest first, then those left out with the reason.

    Raises:
        InputError: the channel has no list, or the Python isn't one.
        IndexUnreachable: the index did not answer.
    """
    if channel == "commit":
        raise InputError("--channel commit: commits are not listed, git log lists them; choose release or nightly")
    display = Display()
    channels = LocalBuildSources(options, display)
    with display.working(f"Reading the list of {channel} builds"):
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
        say(str(one), "left out ")


def print_table(rows: Sequence[Sequence[str]]) -> None:
    """Print rows of texts in columns as wide as their texts, whatever the width of the terminal."""
    widths = [max(map(cell_len, column)) for column in zip(*rows)]
    for row in rows:
        click.echo("  ".join(set_cell_size(text, width) for text, width in zip(row, widths)).rstrip())


def show_plan(options: Options) -> int:
    """Print the steps, the downloads and the disk space that the search takes, and return the exit code.

    Raises:
        InputError: an option can't be used.
        IndexUnreachable: the list of builds can't be read.
    """
    if options.script is not None:
        open_script(options)
    display = Display(options.verbosity)
    provider = LocalProvider(options, display)
    try:
        with display.working("Reading the lists of builds"):
            plans = plan_searches(options, provider.sources)
    finally:
        provider.close()
    if options.as_json:
        click.echo(json.dumps({str(channel): asdict(plan) for channel, plan in plans.items()}, indent=2))
        return Exit.FINISHED
    first, *_ = plans
    click.echo(f"{first}s, {plans[first].summary}")
    if len(plans) > 1:
        summary = plans[Channel.NIGHTLY].summary
        click.echo(f"then for each boundary the nightlies between two releases, at the widest {summary}")
    return Exit.FINISHED
