"""The ``torchbisect`` command: its subcommands, their arguments, and their exit codes."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import click

from torchbisect.cli import inspect_commands, issue_command
from torchbisect.cli.click_options import SEARCH_OPTIONS, options_from, shared_options
from torchbisect.core.errors import Exit, TorchbisectError
from torchbisect.core.version import __version__
from torchbisect.pipeline.options import CHANNELS, Options
from torchbisect.pipeline.run import Pipeline
from torchbisect.triage import command as triage

CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class _Commands(click.Group):
    """A group whose commands end with an exit code and one line, and never with a traceback for a known error."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except TorchbisectError as error:
            click.echo(f"torchbisect: {error}", err=True)
            ctx.exit(error.exit_code)
        except KeyboardInterrupt:
            click.echo("torchbisect: interrupted", err=True)
            ctx.exit(Exit.INTERRUPTED)
        except BrokenPipeError:
            # The reader of the output (a pager, head) has closed it: nothing can be printed any more.
            sys.stderr.close()
            ctx.exit(Exit.MACHINE)


@click.group(cls=_Commands, context_settings=CONTEXT)
@click.version_option(__version__, prog_name="torchbisect")
def main() -> None:
    """Shrink a script that goes wrong under torch.compile and find the build of torch where it broke.

    \b
    Exit codes: 0 mismatch found and all finished     1 no mismatch
                2 wrong usage or input                3 mismatch found, but a part could not finish
                4 flaky                               5 the machine failed
                130 interrupted: the same command continues
    """


_STAGES = (
    click.option("--minimize/--no-minimize", default=True, help="Shrink the script."),
    click.option("--bisect/--no-bisect", default=True, help="Find the builds where it broke and where it was fixed."),
    click.option("--explain/--no-explain", default=False, help="Find the conditions of the shrunk script's mismatch."),
)


def _script_command(name: str, summary: str, *extra: Callable[[Any], Any]) -> None:
    """Add a command about a script; these commands differ only in their stages."""

    def command(**given: Any) -> None:
        options = options_from(name, given)
        if options.plan:
            code = inspect_commands.show_plan(options)
        else:
            pipeline = Pipeline(options)
            code = pipeline.execute()
            inspect_commands.show_report(pipeline.report, pipeline.written, as_json=options.as_json)
        click.get_current_context().exit(code)

    command.__doc__ = summary
    arguments = (
        click.argument("script", type=click.Path(path_type=Path), required=False),
        click.argument("arguments", nargs=-1, type=click.UNPROCESSED),
    )
    decorated = functools.reduce(lambda function, decorate: decorate(function), reversed((*arguments, *extra)), command)
    main.command(name)(shared_options(decorated))


_script_command(
    "run",
    """Observe, localize, minimize, bisect and report.

    The arguments after -- are those of SCRIPT.
    """,
    *_STAGES,
    *SEARCH_OPTIONS,
)
_script_command("check", "Observe SCRIPT and name the compiler stage at fault.")
_script_command("minimize", "Observe and localize SCRIPT, then shrink it.")
_script_command("explain", "Observe, localize and shrink SCRIPT, then find the conditions of the mismatch.")
_script_command(
    "bisect", "Observe SCRIPT, then find where it broke and where it was fixed, without shrinking it.", *SEARCH_OPTIONS
)


@main.command()
@click.argument("folder", type=click.Path(path_type=Path), metavar="DIR")
@click.option("--json", "as_json", is_flag=True, help="Print report.json.")
def report(folder: Path, as_json: bool) -> None:
    """Render a finished or interrupted run again."""
    inspect_commands.render(folder, as_json)


@main.command()
@click.argument("reference", required=False, metavar="[OWNER/REPO#N]")
@click.option("--file", type=click.Path(path_type=Path, dir_okay=False), help="An issue as GitHub's API gives it.")
@click.option("--out", type=click.Path(path_type=Path), default=Path("torchbisect-issue"), show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def issue(reference: str | None, file: Path | None, out: Path, as_json: bool) -> None:
    """Find the script in an issue, and list what is missing to run it. Nothing is run."""
    click.get_current_context().exit(issue_command.show_issue_script(reference, file, out, as_json=as_json))


@main.command("triage")
@click.argument("source", required=False, type=click.Path(path_type=Path))
@click.option("--search", metavar="QUERY", help="Take the issues that GitHub's search finds.")
@click.option("--most", type=click.IntRange(1, 1000), default=200, show_default=True, help="The most issues.")
@click.option("--workers", type=click.IntRange(min=1), default=1, show_default=True, help="Issues at once.")
@click.option("--executor", type=click.Choice(["local", "ray"]), default="local", show_default=True)
@click.option("--address", metavar="HOST:PORT", help="The Ray cluster's.")
@click.option("--gpus", type=click.FloatRange(min=0), default=0.0, help="GPUs that an issue takes of a Ray cluster.")
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


@main.command()
@click.option("--channel", type=click.Choice(CHANNELS), default="release", show_default=True)
@click.option("--python", metavar="PATH", default=sys.executable, show_default="this one")
@click.option("--index-url", metavar="URL", help="As in pip.")
@click.option("--extra-index-url", "extra_index_urls", metavar="URL", multiple=True, help="As in pip.")
@click.option("--variant", metavar="NAME", help="The build's variant: cpu, cu126, ...")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
def builds(channel: str, as_json: bool, **given: Any) -> None:
    """List the builds that a channel offers, and those left out with the reason."""
    inspect_commands.list_builds(Options(Path(), channels=(channel,), **given), channel, as_json)


@main.command()
@click.option("--prune", is_flag=True, help="Remove everything that no run uses.")
@click.option("--docker", is_flag=True, help="Look at volumes and images of the container engine too.")
@click.option("--cache-dir", type=click.Path(path_type=Path, file_okay=False))
def cache(prune: bool, docker: bool, cache_dir: Path | None) -> None:
    """List what is kept on this machine and its size, and remove it."""
    inspect_commands.show_cache(cache_dir, prune=prune, docker=docker)


@main.command()
@click.option("--python", metavar="PATH", default=sys.executable, show_default="this one")
@click.option("--cache-dir", type=click.Path(path_type=Path, file_okay=False))
def doctor(python: str, cache_dir: Path | None) -> None:
    """Check what this machine has and lacks, and say what to do about it."""
    click.get_current_context().exit(inspect_commands.doctor(python, cache_dir))
