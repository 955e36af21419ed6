"""The command line of a script: torchbisect's options, the script, and the script's own arguments.

Options of torchbisect come before the script, and what follows it is the script's, as with ``python``. Where nothing in
the script can read an argument, there is no doubt whose an option is, so it may also follow the script.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import click

from torchbisect.cli.file_path import FilePath
from torchbisect.cli.help_pages import GroupedCommand
from torchbisect.core.command_line import say
from torchbisect.pipeline.script import argument_reader

SCRIPT_ARGUMENTS = (
    click.option("-m", "--module", is_flag=True, help="SCRIPT is a module, as with python -m."),
    click.option("--files", metavar="PATH", multiple=True,
                 help="A file or folder that the script also needs; may be given more than once."),
    click.argument("script", type=FilePath(path_type=Path), required=False),
    click.argument("arguments", nargs=-1, type=click.UNPROCESSED),
)  # fmt: skip


#: The words of argparse, click, typer, absl, fire, getopt, optparse, tyro and hydra about an option that they lack.
_REFUSES = re.compile(
    r"(?i)unrecogni[sz]ed|not recogni[sz]ed|no such option|unknown (?:command|flag|option|argument)|could not consume|"
    r"unexpected (?:argument|option|extra|keyword)"
)


class ScriptCommand(GroupedCommand):
    """A command whose words after the script are the script's."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the words; of a script that reads no argument those after it too."""
        words = list(args)
        ctx.allow_interspersed_args = False
        rest = super().parse_args(ctx, list(args))
        own = tuple(ctx.params.get("arguments") or ())
        if not own:
            return rest
        script, text = str(ctx.params["script"]), argument_reader(ctx.params["script"], module=ctx.params["module"])
        if own[0] == "--":
            ctx.params["arguments"] = own[1:]
            if text is not None or ctx.resilient_parsing:
                return rest
        if text is None:
            ctx.params.clear()
            ctx.allow_interspersed_args, ctx.ignore_unknown_options = True, True
            rest = super().parse_args(ctx, words)
            self._warn_of_unread(script, own, ctx.params["arguments"])
            return rest
        return rest

    def _warn_of_unread(self, script: str, words: Sequence[str], left: Iterable[str]) -> None:
        before = words[: words.index("--")] if "--" in words else words
        for word in left:
            if word.startswith("-") and word in before:
                _warn(f"{word} is no option of torchbisect, and {script} reads no arguments")


def refused_options(command: click.Command, arguments: Sequence[str], said: str) -> list[str]:
    """Return the options of a command among the script's arguments that the script refuses in what it ``said``."""
    known = {name for param in command.params for name in (*param.opts, *param.secondary_opts)}
    lines = [line for line in said.splitlines() if _REFUSES.search(line)]
    names = dict.fromkeys(word.partition("=")[0] for word in arguments if word.startswith("-"))
    return [
        name
        for name in names
        if name in known
        and any(re.search(rf"(?<![\w-])-*{re.escape(name.lstrip('-'))}(?![\w-])", line) for line in lines)
    ]


def _warn(text: str) -> None:
    say(text)


def with_script(command: Any) -> Any:
    """Add the script and its arguments to a command."""
    for decorate in reversed(SCRIPT_ARGUMENTS):
        command = decorate(command)
    return command
