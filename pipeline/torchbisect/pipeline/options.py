"""What the user typed, checked once and frozen: nothing behind this file looks at a command line."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

import click

from torchbisect.containers.store.disk import parse_size
from torchbisect.core.errors import InputError
from torchbisect.minimizer.budget import Budget
from torchbisect.probe.agent_client import Limits
from torchbisect.probe.judge.slowness import Bounds

Command = TypeVar("Command", bound=Callable[..., Any])

CHANNELS = ("release", "nightly", "commit")


@dataclass(frozen=True)
class Options:
    """Everything that shapes a run.

    Attributes:
        script: the failing script; ``None`` where only the user's own test is asked.
        arguments: what the script gets after its name.
        torch: the build where it fails: a version, a date, or ``installed``; ``None`` for the default.
        python: the Python that runs repros and makes environments.
        good: an end of the search that is good, or ``None``.
        bad: an end of the search that is bad, or ``None``.
        find: ``regression``, ``fix`` or ``both``.
        channels: where to look; empty for as fine as can be reached.
        git: where PyTorch's history is; ``None`` for the public one.
        packages: also installed in every environment.
        minimize: shrink the script.
        bisect: look for the builds where it broke and was mended.
        budget: when to stop shrinking and keep the best; ``None`` for never.
        save_trajectory: keep every smaller script on the way.
        explain: look for what the shrunk script's mismatch needs.
        test: a command whose exit status is the verdict, as in git bisect run; ``None`` for a comparison of two runs.
        slower_than: how many times eager's time a compiled call may take; ``None`` for any.
        max_compile_time: seconds that compiling may take; ``None`` for any.
        max_recompiles: how often something may be compiled again; ``None`` for any.
        max_graph_breaks: how many graph breaks there may be; ``None`` for any.
        jobs: how many questions are asked at once; ``None`` for one build, or two candidates of the minimizer's.
        timeout: seconds that the script may take in eager, or the test; ``None`` for the probe's own limit.
        repeat: how often each question is asked.
        seed: of every random generator.
        cache_limit: bytes that environments may take on disk.
        plan: say what the search will cost, and do nothing else.
        build_cmd: builds the torch of a commit, where its Python alone does not tell.
        out: the folder of the results.
        as_json: the final report on standard output.
        verbosity: 1 for ``-v``, -1 for ``-q``, else 0.
    """

    script: Path | None
    arguments: tuple[str, ...] = ()
    torch: str | None = None
    python: str = sys.executable
    good: str | None = None
    bad: str | None = None
    find: str = "both"
    channels: tuple[str, ...] = ()
    index_url: str | None = None
    extra_index_urls: tuple[str, ...] = ()
    sandbox: str = "venv"
    image: str | None = None
    variant: str | None = None
    device: str | None = None
    git: str | None = None
    packages: tuple[str, ...] = ()
    minimize: bool = True
    bisect: bool = True
    budget: Budget | None = None
    save_trajectory: bool = False
    explain: bool = False
    test: str | None = None
    slower_than: float | None = None
    max_compile_time: float | None = None
    max_recompiles: int | None = None
    max_graph_breaks: int | None = None
    jobs: int | None = None
    timeout: float | None = None
    repeat: int = 1
    seed: int = 0
    cache_dir: Path | None = None
    cache_limit: int | None = None
    plan: bool = False
    build_cmd: str | None = None
    out: Path = Path("torchbisect-out")
    as_json: bool = False
    verbosity: int = 0
    command: str = "run"

    @property
    def bounds(self) -> Bounds:
        """What is still fast enough."""
        return Bounds(self.slower_than, self.max_compile_time, self.max_recompiles, self.max_graph_breaks)

    @property
    def limits(self) -> Limits:
        """The limits of every run of a script."""
        return Limits() if self.timeout is None else Limits(eager=self.timeout)

    @property
    def candidates(self) -> int:
        """How many smaller scripts are asked about at once, where that disturbs none of them."""
        if self.bounds or (self.test is not None and self.jobs is None):
            # One beside it would be timed with it; and what a user's test may write is anybody's guess.
            return 1
        return self.jobs or min(2, os.cpu_count() or 1)


_SINGLE = """
torch good bad find index_url sandbox image variant device git build_cmd budget test slower_than max_compile_time
max_recompiles max_graph_breaks jobs timeout repeat seed
"""


def repeat_command(options: Options, script: str | None) -> str:
    """The command line that repeats this run, quoted for a shell, with only what differs from the defaults.

    Args:
        options: what was typed.
        script: how to write the script's path; ``None`` for a run without one.
    """
    defaults = {field.name: field.default for field in fields(Options)}
    words = ["torchbisect", options.command, *([script] if script is not None else [])]
    for name in _SINGLE.split():
        value = getattr(options, name)
        if value != defaults[name]:
            words += [f"--{name.replace('_', '-')}", _written(value)]
    for name, flag in (("channels", "--channel"), ("extra_index_urls", "--extra-index-url"), ("packages", "--with")):
        for value in getattr(options, name):
            words += [flag, value]
    words += ["--save-trajectory"] if options.save_trajectory else []
    if options.command == "run":
        words += [flag for flag, on in (("--no-minimize", options.minimize), ("--no-bisect", options.bisect)) if not on]
        words += ["--explain"] if options.explain else []
    if options.arguments:
        words += ["--", *options.arguments]
    return shlex.join(words)


def _written(value: object) -> str:
    """A value as it is typed; a number without digits that say nothing, and with all that say something."""
    return str(value).removesuffix(".0") if isinstance(value, float) else str(value)


class Size(click.ParamType):  # type: ignore[type-arg]  # generic from click 8.2 on only
    """A number of bytes as people write it."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            return value if isinstance(value, int) else parse_size(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


#: What only commands that search have.
SEARCH_OPTIONS = (
    click.option("--plan", is_flag=True, help="Print what the search will cost, and do nothing else."),
    click.option(
        "--build-cmd",
        metavar="COMMAND",
        help="Builds a commit in its work tree, where its Python alone doesn't tell; status 125 skips it.",
    ),
)


def shared_options(command: Command, out: str = "torchbisect-out") -> Command:
    """The options that every command that runs scripts has, in the order in which ``--help`` shows them.

    Args:
        command: what gets them.
        out: the folder of the results where ``--out`` names none.
    """
    decorators = [
        click.option("--torch", metavar="BUILD", help="The torch where it fails: 2.8.0, 2026-02-12 or 'installed'."),
        click.option("--python", metavar="PATH", default=sys.executable, show_default="this one",
                     help="The Python that runs the script and makes environments."),
        click.option("--good", metavar="BUILD", help="A build where it works; searched for if left out."),
        click.option("--bad", metavar="BUILD", help="A build where it fails; default: that of --torch."),
        click.option("--find", type=click.Choice(["regression", "fix", "both"]), default="both", show_default=True,
                     help="Where it broke, where it was mended, or both."),
        click.option("--channel", "channels", type=click.Choice(CHANNELS), multiple=True,
                     help="Where to look; may be given more than once. Default: as fine as can be reached."),
        click.option("--index-url", metavar="URL", help="As in pip."),
        click.option("--extra-index-url", "extra_index_urls", metavar="URL", multiple=True, help="As in pip."),
        click.option("--sandbox", type=click.Choice(["venv", "docker"]), default="venv", show_default=True,
                     help="Where the script runs."),
        click.option("--image", metavar="IMAGE", help="The container image, with --sandbox docker."),
        click.option("--variant", metavar="NAME", help="The build's variant: cpu, cu126, ..."),
        click.option("--device", type=click.Choice(["cpu", "cuda"]), help="The script's default device."),
        click.option("--git", metavar="PLACE", help="PyTorch's history: a clone, or the address of one."),
        click.option("--with", "packages", metavar="PACKAGE", multiple=True,
                     help="Also installed in every environment; may be given more than once."),
        click.option("--budget", metavar="SECONDS|QUESTIONS",
                     help="Stop shrinking then and keep the best: 90s, 5m or 200q (questions)."),
        click.option("--save-trajectory", is_flag=True, help="Keep every smaller script on the way in OUT/trajectory."),
        click.option("--test", metavar="CMD",
                     help="A command whose exit status decides, as in git bisect run: 0 good, 125 skip, else bad."),
        click.option("--slower-than", type=click.FloatRange(min=0, min_open=True), metavar="RATIO",
                     help="A compiled call that takes more than so many times eager's time is a mismatch."),
        click.option("--max-compile-time", type=click.FloatRange(min=0, min_open=True), metavar="SECONDS",
                     help="Compiling for longer than this is a mismatch."),
        click.option("--max-recompiles", type=click.IntRange(min=0), metavar="N",
                     help="More recompiles than this are a mismatch."),
        click.option("--max-graph-breaks", type=click.IntRange(min=0), metavar="N",
                     help="More graph breaks than this are a mismatch."),
        click.option("--jobs", type=click.IntRange(min=1),
                     help="How many questions are asked at once: 2 candidates while shrinking, 1 build, if left out."),
        click.option("--timeout", type=click.FloatRange(min=0, min_open=True), metavar="SECONDS",
                     help="How long the script may take without torch.compile, or the test."),
        click.option("--repeat", type=click.IntRange(min=1), default=1, show_default=True,
                     help="How often each question is asked."),
        click.option("--seed", type=int, default=0, show_default=True, help="Of every random generator."),
        click.option("--cache-dir", type=click.Path(path_type=Path, file_okay=False),
                     help="Where environments are kept."),
        click.option("--cache-limit", type=Size(), metavar="SIZE",
                     help="Keep that folder under this size (20GB): what is longest unused goes."),
        click.option("--out", type=click.Path(path_type=Path), default=Path(out), show_default=True,
                     help="The folder of the results."),
        click.option("--json", "as_json", is_flag=True, help="Print report.json on standard output at the end."),
        click.option("-v", "--verbose", count=True, help="Say why each answer was given."),
        click.option("-q", "--quiet", is_flag=True, help="Show results only."),
    ]  # fmt: skip
    for decorate in reversed(decorators):
        command = decorate(command)
    return command


def options_from(command: str, given: dict[str, Any]) -> Options:
    """Check what click collected and freeze it.

    Raises:
        InputError: two options don't go together, or a value can't be used.
    """
    given = dict(given)
    verbose, quiet = given.pop("verbose", 0), given.pop("quiet", False)
    if verbose and quiet:
        raise InputError("-v and -q don't go together: leave one of them out")
    given["budget"] = _budget(given.get("budget"))
    options = Options(command=command, verbosity=-1 if quiet else min(verbose, 1), **given)
    _check_question(options)
    if options.image is not None and options.sandbox != "docker":
        raise InputError("--image is for --sandbox docker: add that, or leave --image out")
    if options.cache_limit is not None and options.sandbox == "docker":
        raise InputError("--cache-limit is for --sandbox venv: leave it out, and use torchbisect cache --docker")
    if options.build_cmd is not None and options.sandbox == "docker":
        raise InputError("--build-cmd is for --sandbox venv: what it builds is not taken into a container")
    if options.out.exists() and not options.out.is_dir():
        raise InputError(f"--out {options.out}: this is a file and not a folder; name another folder")
    if any(not package.strip() for package in options.packages):
        raise InputError("--with: the package's name is empty; write --with numpy, say")
    return options


def _budget(text: str | None) -> Budget | None:
    try:
        return None if text is None else Budget.parsed(text)
    except ValueError:
        raise InputError(f"--budget {text}: write a time or a number of questions, such as 90s, 5m or 200q") from None


def _check_question(options: Options) -> None:
    """What is asked: about a script, by the user's own test, or about a script by that test."""
    if options.test is None:
        if options.script is None:
            raise InputError("name the script that fails, or give a test of your own with --test CMD")
        return
    if not options.test.strip():
        raise InputError("--test: the command is empty; write --test 'sh test.sh', say")
    if options.bounds:
        raise InputError("--test decides by itself: leave out --slower-than and the --max-... options")
    if options.script is None and options.command in ("minimize", "explain"):
        raise InputError("there is nothing to shrink: name the script that the test runs as $TORCHBISECT_SCRIPT")
    if options.arguments:
        raise InputError("what follows -- is for a script that torchbisect runs: write it into the --test command")
