"""The next step of a reader after a run: one line at the end of each command about a script."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from torchbisect.pipeline.options import Options, repeat_command
from torchbisect.reports import files
from torchbisect.reports.model.report import Report


def next_step(options: Options, report: Report, refused: Sequence[str] = (), *, has_graphs: bool = False) -> str:
    """Return what a reader may do after this run; empty where the report says it already.

    Args:
        refused: the options of torchbisect among the script's arguments, which the script refused.
        has_graphs: the scripts were made of the graphs of a trace, which has no values of their inputs.
    """
    if refused and report.verdict == "untestable":
        verb = "are options" if len(refused) > 1 else "is an option"
        return f"{' and '.join(refused)} {verb} of torchbisect: type {_it(refused)} before {options.script}"
    if report.state == "interrupted" or report.verdict == "untestable":
        return ""
    if report.verdict == "none" and has_graphs:
        return f"inputs are drawn, as graphs have none: put the program's into a script of {options.out}, and name that"
    if report.verdict == "none":
        return "if it fails with another torch, name that with --torch; if it fails at times, add --repeat 20"
    if report.verdict == "flaky":
        return "--repeat 20 asks each question twenty times; a --seed or a fixed input may make it certain"
    if report.state == "partial":
        return "the same command tries again what is not finished"
    steps = [f"{_command(options, name)} {words}" for name, words in _other_commands(options)]
    if options.command != "check":
        steps.append(f"read {options.out / files.MARKDOWN}, and paste it into an issue")
    return "; ".join(steps)


def _it(words: Sequence[str]) -> str:
    return "them" if len(words) > 1 else "it"


def _other_commands(options: Options) -> list[tuple[str, str]]:
    """Return the commands that do what this one did not, each with what it does."""
    if options.script is None or str(options.script) == "-":
        return []
    made = {
        "run": (options.minimize, options.bisect),
        "check": (False, False),
        "minimize": (True, False),
        "explain": (True, False),
        "bisect": (False, True),
    }[options.command]
    finds = "finds where it broke and where it was fixed" if options.measure is None else "finds where it became worse"
    known = (("minimize", "shrinks it"), ("bisect", finds))
    return [one for one, done in zip(known, made) if not done]


def _command(options: Options, name: str) -> str:
    kept = replace(options, command=name, build_cmd=None, minimize=True, bisect=True, emit_test=False, emit_trace=False)
    return repeat_command(kept, str(options.script))
