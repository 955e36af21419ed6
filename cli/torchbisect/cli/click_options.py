"""The options of the commands that run scripts, as click declares them, and their translation into ``Options``."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from torchbisect.cli.file_path import FilePath
from torchbisect.containers.store.disk import parse_size
from torchbisect.core.errors import InputError
from torchbisect.minimizer.budget import Budget
from torchbisect.pipeline.options import CHANNELS, Options, check_options

Command = TypeVar("Command", bound=Callable[..., Any])


class Size(click.ParamType):  # type: ignore[type-arg]  # generic from click 8.2 on only
    """A number of bytes as people write it: ``20GB``."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            return value if isinstance(value, int) else parse_size(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class Number(click.FloatRange):
    """A number that a clock and a comparison can work with: finite, and with an upper limit."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number: float = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not a number between {self.min:g} and {self.max:g}", param, ctx)
        return number


#: Thirty days: no run of a script is allowed longer.
_LONGEST = 30 * 86400
_MOST = 1_000_000_000


def build_command_option(help: str) -> Callable[[Command], Command]:
    """Return the option of a command that may build torch."""
    return click.option("--build-cmd", metavar="COMMAND", help=help)


#: The options of the commands that search.
SEARCH_OPTIONS = (
    click.option("--plan", is_flag=True, help="Print the cost of the search, and do nothing else."),
    build_command_option(
        "Builds a commit in its work tree, where its Python files alone do not decide; status 125 skips it."
    ),
)


_BUILD_OPTIONS = (
    click.option("--torch", metavar="BUILD", help="The torch where it fails: 2.8.0, 2026-02-12 or 'installed'."),
    click.option("--nearest", is_flag=True,
                 help="If that build cannot be had (a nightly that is gone, a build from source), take the nearest."),
    click.option("--python", metavar="PATH", default=sys.executable, show_default="this one",
                 help="The Python that runs the script and makes environments."),
    click.option("--good", metavar="BUILD", help="A build where it works; the default is to search for one."),
    click.option("--bad", metavar="BUILD", help="A build where it fails; the default is that of --torch."),
    click.option("--find", type=click.Choice(["regression", "fix", "both"]), default="both", show_default=True,
                 help="Where it broke, where it was fixed, or both."),
    click.option("--channel", "channels", type=click.Choice(CHANNELS), multiple=True,
                 help="The builds to search; may be given more than once. Default: as fine as can be reached."),
    click.option("--index-url", metavar="URL", help="As in pip."),
    click.option("--extra-index-url", "extra_index_urls", metavar="URL", multiple=True, help="As in pip."),
    click.option("--sandbox", type=click.Choice(["venv", "docker"]), default="venv", show_default=True,
                 help="Where the script runs: in virtual environments, or in containers."),
    click.option("--image", metavar="IMAGE", help="The container image, with --sandbox docker."),
    click.option("--runtime", metavar="NAME",
                 help="The engine's runtime for containers, such as runsc; the default is the engine's own."),
    click.option("--variant", metavar="NAME", help="The build's variant: cpu, cu126, ..."),
    click.option("--device", type=click.Choice(["cpu", "cuda"]), help="The script's default device."),
    click.option("--git", metavar="PLACE", help="A clone of PyTorch, or the address of one."),
    click.option("--with", "packages", metavar="PACKAGE", multiple=True,
                 help="Also installed in every environment; may be given more than once. auto: what is imported."),
    click.option("--allow-sdists", is_flag=True,
                 help="Build packages that have no wheel from source; this runs their code at the install."),
)  # fmt: skip
_RUN_OPTIONS = (
    click.option("--budget", metavar="SECONDS|QUESTIONS",
                 help="Stop shrinking after this and keep the smallest script: 90s, 5m or 200q (questions). A time "
                      "includes the runs that confirm it under plain python."),
    click.option("--save-trajectory", is_flag=True, help="Keep every smaller script on the way in OUT/trajectory."),
    click.option("--test", metavar="CMD",
                 help="A command whose exit status decides, as in git bisect run: 0 good, 125 skip, else bad."),
    click.option("--slower-than", type=Number(min=0, max=_MOST, min_open=True), metavar="RATIO",
                 help="A compiled call that takes more than RATIO times as long as eager is a mismatch."),
    click.option("--max-compile-time", type=Number(min=0, max=_LONGEST, min_open=True), metavar="SECONDS",
                 help="Compiling for longer than this is a mismatch."),
    click.option("--max-recompiles", type=click.IntRange(0, _MOST), metavar="N",
                 help="More recompiles than this are a mismatch."),
    click.option("--max-graph-breaks", type=click.IntRange(0, _MOST), metavar="N",
                 help="More graph breaks than this are a mismatch."),
    click.option("--measure", metavar="NUMBER",
                 help="Compare builds by a number, and not compiled code with eager: time, cpu-time, compile-time, "
                      "memory, kernel-count, graph-breaks, recompiles, or metric:NAME for a line NAME=12.3 that the "
                      "script prints. For run, check, minimize and bisect."),
    click.option("--worse-by", type=Number(min=0, max=_MOST, min_open=True), metavar="RATIO",
                 help="With --measure: a build is worse from this ratio to the other build on. The default is 1.2."),
    click.option("--against", metavar="BUILD",
                 help="With --measure: the build that others are measured against; the default is the good one."),
    click.option("--jobs", type=click.IntRange(1, 1024),
                 help="Questions asked at once. The default: 2 candidates while shrinking, 2 nightlies asked by "
                      "their Python alone, 1 build that is installed."),
    click.option("--timeout", type=Number(min=0, max=_LONGEST, min_open=True), metavar="SECONDS",
                 help="The most time that a run of the script may take, or the test. The default: 60 s without "
                      "torch.compile; with it 20 times as long as without, at least 90 s and at most 10 min."),
    click.option("--repeat", type=click.IntRange(1, 1_000_000), metavar="N", default=1, show_default=True,
                 help="The number of runs behind each answer."),
    click.option("--seed", type=click.IntRange(-(2**63), 2**64 - 1), default=0, show_default="0", metavar="N",
                 help="The seed of every random generator."),
    click.option("--cache-dir", type=FilePath(path_type=Path, file_okay=False),
                 help="The folder of the environments."),
    click.option("--cache-limit", type=Size(), metavar="SIZE",
                 help="The largest size of that folder; the default is a tenth of the disk and at least 20GB. The "
                 "environments unused for longest are removed."),
)  # fmt: skip
_OUTPUT_OPTIONS = (
    click.option("--json", "as_json", is_flag=True, help="Print report.json on standard output at the end."),
    click.option("--profile", is_flag=True, help="At the end, print the time of each stage and of its parts."),
    click.option("-v", "--verbose", count=True, help="Show the reason of each answer."),
    click.option("-q", "--quiet", is_flag=True, help="Show results only."),
)  # fmt: skip


def shared_options(
    command: Command, out: str | None = "torchbisect-out", help: Mapping[str, str] | None = None
) -> Command:
    """Add the options of every command that runs scripts, in the order of ``--help``.

    Args:
        out: the default folder of the results; ``None`` for a command that writes into a folder it is given.
        help: the help of options that mean something else to this command, by the names of their parameters.
    """
    folder = click.option(
        "--out",
        type=FilePath(path_type=Path),
        default=Path(out or ""),
        show_default=True,
        help="The folder of the results.",
    )
    for decorate in reversed((*_BUILD_OPTIONS, *_RUN_OPTIONS, *([folder] if out else []), *_OUTPUT_OPTIONS)):
        command = decorate(command)
    for option in getattr(command, "__click_params__", ()):
        option.help = (help or {}).get(option.name, option.help)
    return command


def options_from(command: str, given: dict[str, Any]) -> Options:
    """Return the options in the values that click collected. Raises ``InputError`` if they do not go together."""
    given = dict(given)
    verbose, quiet = given.pop("verbose", 0), given.pop("quiet", False)
    if verbose and quiet:
        raise InputError("-v and -q don't go together: leave one of them out")
    given["budget"] = _budget(given.get("budget"))
    return check_options(Options(command=command, verbosity=-1 if quiet else min(verbose, 1), **given))


def _budget(text: str | None) -> Budget | None:
    try:
        return None if text is None else Budget.parsed(text)
    except ValueError:
        raise InputError(f"--budget {text}: write a time or a number of questions, such as 90s, 5m or 200q") from None
