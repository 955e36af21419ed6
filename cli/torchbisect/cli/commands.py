"""The commands of ``torchbisect``: their arguments, and their exit codes."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import click

from torchbisect.cli import inspect_commands, issue_command, verify_command
from torchbisect.cli.click_options import (
    SEARCH_OPTIONS,
    Number,
    Size,
    build_command_option,
    options_from,
    shared_options,
)
from torchbisect.cli.file_path import FilePath
from torchbisect.cli.help_pages import CONTEXT, CommandGroup, GroupedCommand
from torchbisect.cli.next_step import next_step
from torchbisect.cli.script_command import ScriptCommand, refused_options, with_script
from torchbisect.cli.traces import with_graphs
from torchbisect.cli.typed_input import with_typed_input
from torchbisect.containers.leftovers import sweep
from torchbisect.core.errors import InputError
from torchbisect.core.version import __version__
from torchbisect.pipeline.options import CHANNELS, Options
from torchbisect.pipeline.progress import Display
from torchbisect.triage import command as triage
from torchbisect.triage import watch_command as watch
from torchbisect.triage.candidates import run_first_that_fails
from torchbisect.triage.suite import command as suite


@click.group(cls=CommandGroup, context_settings=CONTEXT)
@click.version_option(__version__, "-V", "--version", prog_name="torchbisect")
def main() -> None:
    """Shrink a script that goes wrong under torch.compile and find the build of torch where it broke.

    \b
    Exit codes: 0 mismatch found and all finished     1 no mismatch
                2 wrong usage or input                3 mismatch found, but a part could not finish
                4 flaky                               5 the machine failed
                6 the script can't be tested          130 interrupted: the same command continues

    \b
    A first try: torchbisect check repro.py
    """
    with Display().working("Removing what killed runs left"):
        sweep()


_STAGES = (
    click.option("--minimize/--no-minimize", default=True, help="Shrink the script."),
    click.option("--bisect/--no-bisect", default=True, help="Find the builds where it broke and where it was fixed."),
    click.option("--explain/--no-explain", default=False, help="Find the conditions of the shrunk script's mismatch."),
)

_HANDOVER = (
    click.option("--emit-test", is_flag=True, help="Write the shrunk script as a test of PyTorch's suite too."),
    click.option("--emit-trace", is_flag=True, help="Write the shrunk script's trace for tlparse too (TORCH_TRACE)."),
)

_WORKERS = (
    click.option("--workers", type=click.IntRange(1, 1024), default=1, show_default=True, help="Issues at once."),
    click.option("--executor", type=click.Choice(["local", "ray"]), default="local", show_default=True),
    click.option("--address", metavar="HOST:PORT", help="The Ray cluster's."),
    click.option(
        "--gpus", type=Number(min=0, max=1024), default=0.0, help="GPUs that an issue takes of a Ray cluster."
    ),
)


def _script_command(name: str, summary: str, *extra: Callable[[Any], Any], short: str | None = None) -> None:
    """Add a command about a script; these commands differ only in their stages."""

    def command(**given: Any) -> None:
        options = options_from(name, given)
        reference = issue_command.issue_named(options.script)
        graphs = with_graphs(options) if reference is None else ()
        if reference is not None:
            candidates: tuple[Options, ...] = issue_command.with_issue(options, reference)
        else:
            candidates = graphs or (with_typed_input(options),)
        if options.plan:
            click.get_current_context().exit(inspect_commands.show_plan(candidates[0]))
        pipeline, code = run_first_that_fails(candidates, notify=functools.partial(click.echo, err=True))
        report, context = pipeline.report, click.get_current_context()
        said = f"{report.logs.eager if report.logs else ''}\n{report.reason or ''}"
        refused = refused_options(context.command, options.arguments, said)
        hint = next_step(options, report, refused, has_graphs=bool(graphs))
        inspect_commands.show_report(report, pipeline.written, as_json=options.as_json, hint=hint)
        context.exit(code)

    command.__doc__ = summary
    command = functools.reduce(lambda function, decorate: decorate(function), reversed(extra), command)
    main.command(name, cls=ScriptCommand, short_help=short)(shared_options(with_script(command)))


_script_command(
    "run",
    """Observe, localize, minimize, bisect and report.

    SCRIPT is a file, a notebook, a test (FILE::TEST), - for standard input, or with -m a module. What follows it are
    its own arguments. A folder or log of TORCH_TRACE or TORCH_COMPILE_DEBUG stands for the graphs in it.
    """,
    *_STAGES,
    *_HANDOVER,
    *SEARCH_OPTIONS,
)
_script_command("check", "Observe SCRIPT and name the compiler stage at fault.")
_script_command("minimize", "Observe and localize SCRIPT, then shrink it.", *_HANDOVER)
_script_command(
    "explain",
    "Observe, localize and shrink SCRIPT, then find the conditions of the mismatch.",
    short="Shrink SCRIPT, and find what its mismatch needs.",
)
_script_command(
    "bisect",
    "Observe SCRIPT, then find where it broke and where it was fixed, without shrinking it.",
    *SEARCH_OPTIONS,
    short="Find the builds where SCRIPT broke and was fixed.",
)


@main.command("verify", cls=ScriptCommand, short_help="Show what a patch of PyTorch does to a bug.")
@click.option("--patch", metavar="FILE|COMMIT|PR", help="A diff, a commit, or a pull request (#161036).")
@click.option("--revert", is_flag=True, help="Take the patch back from the build.")
@click.option(
    "--also", type=FilePath(path_type=Path), multiple=True, help="A script, or a folder of scripts, to ask too."
)
@build_command_option("Builds the commit in its work tree, if the patch changes compiled code.")
@shared_options
@with_script
def verify(patch: str | None, revert: bool, also: tuple[Path, ...], **given: Any) -> None:
    """Show what a patch of PyTorch does to a bug: fix it, cause it, or nothing.

    SCRIPT shows the bug, or is a folder with its report. It is run on a build (--torch) without the patch's Python and
    with it. Exit codes: 0 an effect, 1 none, 3 it breaks a script of --also, 6 it cannot be told.
    """
    options = options_from("verify", given)
    click.get_current_context().exit(verify_command.verify_patch(options, patch, revert=revert, also=also))


@main.command()
@click.argument("folder", type=FilePath(path_type=Path), metavar="DIR")
@click.option("--json", "as_json", is_flag=True, help="Print report.json.")
def report(folder: Path, as_json: bool) -> None:
    """Render a finished or interrupted run again."""
    inspect_commands.render(folder, as_json)


@main.command(short_help="Find the script in an issue, and say what it lacks.")
@click.argument("reference", required=False, metavar="[OWNER/REPO#N|URL|FILE]")
@click.option("--file", type=FilePath(path_type=Path, dir_okay=False), help="A file with the issue.")
@click.option("--out", type=FilePath(path_type=Path), default=Path("torchbisect-issue"), show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def issue(reference: str | None, file: Path | None, out: Path, as_json: bool) -> None:
    """Find the script in an issue, and list what is missing to run it. Nothing is run.

    FILE is JSON of GitHub's API or of gh issue view --json title,body, or the issue's text in Markdown.
    """
    click.get_current_context().exit(issue_command.show_issue_script(reference, file, out, as_json=as_json))


@main.command("triage", cls=GroupedCommand, short_help="Run many issues or scripts, and show all in a table.")
@click.argument("source", required=False, type=FilePath(path_type=Path))
@click.option("--search", metavar="QUERY", help="Take the issues that GitHub's search finds.")
@click.option("--most", type=click.IntRange(1, 1000), default=200, show_default=True, help="The most issues.")
@_WORKERS[0]
@_WORKERS[1]
@_WORKERS[2]
@_WORKERS[3]
@_STAGES[0]
@_STAGES[1]
@_STAGES[2]
@functools.partial(shared_options, out="torchbisect-triage")
def triage_command(**given: Any) -> None:
    """Run many issues: a file of them (JSON, one a line), a folder of scripts, or what a search on GitHub finds.

    Results are kept: the same command continues where it stopped. --torch stated runs each script on the torch
    that its issue names.
    """
    wanted = triage.TriageOptions(**{field.name: given.pop(field.name) for field in fields(triage.TriageOptions)})
    options = options_from("run", {"script": Path(), **given})
    click.get_current_context().exit(triage.triage(wanted, options))


@main.command("suite", cls=GroupedCommand, short_help="Find the new failures of a test suite on another build.")
@click.argument("command", metavar="'pytest ARGUMENTS'")
@click.option("--files", metavar="PATH", multiple=True, help="A file or folder that the suite also needs.")
@_STAGES[0]
@_STAGES[1]
@functools.partial(
    shared_options,
    out="torchbisect-suite",
    help={
        "good": "The build on which the suite passes.",
        "bad": "The build on which some of its tests fail.",
        "timeout": "The most time that one test may take. The default: 600 s.",
        "as_json": "Print suite.json on standard output at the end.",
    },
)
def suite_command(command: str, **given: Any) -> None:
    """Run a test suite on two builds, group the failures that are new, and shrink and bisect one of each group.

    Tests that fail on both builds, at times, or without torch.compile too are named apart. The same command continues
    where it stopped.
    """
    options = options_from("suite", {"script": Path(), **given})
    click.get_current_context().exit(suite.suite(command, options))


@main.command("watch", cls=GroupedCommand, short_help="Ask every known bug again on the newest build.")
@click.argument("place", type=FilePath(path_type=Path), metavar="FOLDER|DATABASE")
@click.option("--add", "added", type=FilePath(path_type=Path), multiple=True, help="A report to watch too.")
@click.option("--last", type=click.IntRange(1, 1000), default=1, show_default=True, help="Ask the newest N builds.")
@click.option("--comment", is_flag=True, help="Say each change in the comment on its issue (GH_TOKEN).")
@_WORKERS[0]
@_WORKERS[1]
@_WORKERS[2]
@_WORKERS[3]
@functools.partial(
    shared_options,
    out=None,
    help={
        "torch": "The build to ask; the default is the newest of the channel.",
        "channels": "The builds to ask; the default is release.",
        "budget": "Stop asking after this, such as 2h or 500q (questions); the same command goes on.",
        "as_json": "Print the ledger as JSON.",
    },
)
def watch_command(**given: Any) -> None:
    """Ask every known bug again on the newest build, and keep the history: still there, fixed in, back in.

    FOLDER is that of a triage, or one with reports. The same command continues where it stopped, and asks
    nothing that is known: made for a job that runs every night.
    """
    wanted = watch.WatchOptions(**{field.name: given.pop(field.name) for field in fields(watch.WatchOptions)})
    options = options_from("run", {"script": Path(), **given})
    click.get_current_context().exit(watch.watch(wanted, options))


@main.command(short_help="List the builds of a channel, and those left out.")
@click.option("--channel", type=click.Choice(CHANNELS), default="release", show_default=True)
@click.option("--python", metavar="PATH", default=sys.executable, show_default="this one")
@click.option("--index-url", metavar="URL", help="As in pip.")
@click.option("--extra-index-url", "extra_index_urls", metavar="URL", multiple=True, help="As in pip.")
@click.option("--variant", metavar="NAME", help="The build's variant: cpu, cu126, ...")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
def builds(channel: str, as_json: bool, **given: Any) -> None:
    """List the builds that a channel offers, and those left out with the reason."""
    inspect_commands.list_builds(Options(Path(), channels=(channel,), **given), channel, as_json)


@main.command(short_help="List what is kept on this machine, and remove it.")
@click.option("--prune", is_flag=True, help="Remove everything that no run uses.")
@click.option("--docker", is_flag=True, help="Look at volumes and images of the container engine too.")
@click.option("--cache-dir", type=FilePath(path_type=Path, file_okay=False))
@click.option(
    "--down-to", type=Size(), metavar="SIZE", help="Remove what was unused for longest, until this much is left."
)
def cache(prune: bool, docker: bool, cache_dir: Path | None, down_to: int | None) -> None:
    """List what is kept on this machine and its size, and remove it."""
    from torchbisect.cli import machine_commands

    machine_commands.show_cache(cache_dir, prune=prune, docker=docker, down_to=down_to)


@main.command(short_help="Check this machine, and say what it lacks.")
@click.option("--python", metavar="PATH", default=sys.executable, show_default="this one")
@click.option("--cache-dir", type=FilePath(path_type=Path, file_okay=False))
def doctor(python: str, cache_dir: Path | None) -> None:
    """Check what this machine has and lacks, and say what to do about it."""
    from torchbisect.cli import machine_commands

    click.get_current_context().exit(machine_commands.doctor(python, cache_dir))


@main.command("mcp", short_help="Serve these commands to coding agents.")
def mcp_command() -> None:
    """Serve check, minimize, bisect, verify and issue as tools, by the Model Context Protocol over stdio.

    Scripts run in containers unless a call asks for virtual environments.
    """
    try:
        from torchbisect.cli.mcp_server import server
    except ModuleNotFoundError as error:
        raise InputError(f"this needs the package {error.name}: pip install 'torchbisect[mcp]'") from error
    server.run("stdio")
