"""Help pages: the options of a command in groups, without those that change nothing there, and examples."""

from __future__ import annotations

import os
import re
import shlex
from typing import Any

import click

from torchbisect.cli.configuration import ConfiguredProgram

#: How every command's page of help is asked for, and its width in characters.
CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
#: The groups of options, in the order of a page, with the names of their parameters.
GROUPS = {
    "The script": "module files torch nearest python device packages allow_sdists seed test",
    "What is done": "patch revert also minimize bisect explain plan",
    "What counts as a mismatch": "slower_than max_compile_time max_recompiles max_graph_breaks",
    "Builds compared by a number": "measure worse_by against",
    "Shrinking": "budget save_trajectory",
    "The search": "find good bad channels git build_cmd",
    "The issues": "search most added last comment workers executor address gpus",
    "Where builds come from": "index_url extra_index_urls variant",
    "Where it runs": "sandbox image runtime timeout repeat jobs cache_dir cache_limit",
    "Output": "out emit_test emit_trace as_json profile verbose quiet",
}
_SEARCH = {"find", "good", "channels", "git"}
_SHRINKING = {"budget", "save_trajectory"}
_MEASURING = {"measure", "worse_by", "against"}
#: Options that a command accepts, so that a command line can be reused, and that change nothing there; those of a
#: measured search end it with an error.
UNUSED = {
    "triage": _MEASURING,
    "suite": _MEASURING
    | {"find", "torch", "nearest", "test", "seed", "profile", "explain", "save_trajectory"}
    | {"slower_than", "max_compile_time", "max_recompiles", "max_graph_breaks"},
    "check": _SEARCH | _SHRINKING,
    "minimize": _SEARCH,
    "explain": _SEARCH | _MEASURING,
    "bisect": _SHRINKING,
    "verify": (_SEARCH - {"git"}) | _SHRINKING | _MEASURING | {"test", "profile"},
    "watch": _SEARCH - {"channels"}
    | {"bad", "test", "profile", "nearest", "save_trajectory", "seed", "repeat", "jobs", "device"}
    | {"slower_than", "max_compile_time", "max_recompiles", "max_graph_breaks", "allow_sdists"}
    | _MEASURING,
}
_EXAMPLES = {
    "run": (
        "torchbisect run repro.py",
        "torchbisect run --torch 2.8.0 --with einops train.py --epochs 1",
        "torchbisect run --sandbox docker pytorch/pytorch#169179",
    ),
    "check": ("torchbisect check repro.py", "torchbisect check -m pkg.train --epochs 1"),
    "minimize": ("torchbisect minimize --budget 5m repro.py",),
    "explain": ("torchbisect explain repro.py",),
    "bisect": ("torchbisect bisect --torch 2.8.0 repro.py", "torchbisect bisect --plan --channel release repro.py"),
    "verify": (
        "torchbisect verify --patch fix.diff --torch 2.8.0 repro.py",
        "torchbisect verify --patch '#161036' --also known-bugs/ torchbisect-out",
        "torchbisect verify --revert --patch 8aad3a60 --git ~/pytorch torchbisect-out",
        "torchbisect verify --patch fix.diff --git ~/pytorch --build-cmd 'pip install -e . -v' repro.py",
    ),
    "triage": ("torchbisect triage --sandbox docker issues.jsonl", "torchbisect triage --torch stated scripts/"),
    "suite": ("torchbisect suite 'pytest tests -q' --good 2.12.0 --bad 2.13.0",),
    "watch": (
        "torchbisect watch --channel nightly --budget 2h torchbisect-triage",
        "torchbisect watch --add torchbisect-out --torch 2.9.1 torchbisect-triage",
    ),
}


# A range that click shows and that nobody reaches, such as 0<x<=1000000000.
_WIDE_RANGE = re.compile(r"(?:; )?-?[\d.]+<=?x<=?\d{6,}")


class GroupedCommand(click.Command):
    """A command whose page of help has its options in groups, and examples."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        # click keeps the first help option that is made, and a command that is used without its group has no -h
        super().__init__(*args, **{"context_settings": CONTEXT, **kwargs})

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, group by group."""
        unused = UNUSED.get(self.name or "", set())
        shown = [
            param for param in self.get_params(ctx) if isinstance(param, click.Option) and param.name not in unused
        ]
        records = {param.name: record for param in shown if (record := param.get_help_record(ctx)) is not None}
        for title, names in GROUPS.items():
            rows = [records.pop(name) for name in names.split() if name in records]
            rows += records.values() if title == "Output" else ()
            rows = [(names, _WIDE_RANGE.sub("", text).replace("  []", "")) for names, text in rows]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples."""
        examples = _EXAMPLES.get(self.name or "", ())
        if examples:
            with formatter.section("Examples"):
                for example in examples:
                    formatter.write(f"{'':{formatter.current_indent}}{example}\n")
        super().format_epilog(ctx, formatter)


class CommandGroup(ConfiguredProgram):
    """The group of all commands; the name of a script in the place of a command is explained."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the options of the group; an option of a command that stands before it is explained."""
        typed = list(args)
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            name = next((word for word in typed if word in self.commands), "run")
            if any(error.option_name in param.opts for param in self.commands[name].params):
                words = shlex.join(["torchbisect", name, *(word for word in typed if word != name)])
                raise click.UsageError(f"{error.option_name} comes after the command: type {words}", ctx) from None
            raise

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """Return the command that was typed. Raises ``click.UsageError`` if there is none."""
        word = args[0] if args else ""
        if word == "help":
            click.echo(ctx.get_help())
            ctx.exit()
        if word and self.get_command(ctx, word) is None and _is_script(word):
            raise click.UsageError(f"{word} is a script and no command: type torchbisect run {shlex.join(args)}", ctx)
        return super().resolve_command(ctx, args)


def _is_script(word: str) -> bool:
    return word.partition("::")[0].endswith((".py", ".ipynb")) or os.path.isfile(word)
