"""The ``issue`` command, and ``run`` of an issue: find its script, and the torch that it states."""

from __future__ import annotations

import json
import os
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from torchbisect.containers.store.disk import writable_directory
from torchbisect.core.command_line import say
from torchbisect.core.errors import Exit, InputError
from torchbisect.pipeline.options import Options
from torchbisect.pipeline.progress import Display
from torchbisect.reports import files
from torchbisect.triage.github import Reference
from torchbisect.triage.issue_input import fetch, post_in, read_post, reference_in
from torchbisect.triage.issues.body import Issue, read_issue
from torchbisect.triage.issues.script_facts import installable

SCRIPT = "repro.py"


def show_issue_script(place: str | None, file: Path | None, out: Path, *, as_json: bool) -> int:
    """Find the script of an issue, write it, print how to run it or what is missing, and return the exit code.

    Args:
        place: ``OWNER/REPO#N`` or an address, which is read from GitHub, or the path of a file with the issue.
        file: a file with the issue, instead of a place.
        out: the folder of the script.
        as_json: print the result as JSON.

    Raises:
        InputError: neither or both of the two are given, or there is no such issue.
        MachineError: GitHub did not answer.
    """
    if (place is None) is (file is None):
        raise InputError("name an issue: either OWNER/REPO#N, its address, or a file with it")
    with Display().working("Reading the issue"):
        post = post_in(file) if file is not None else read_post(place or "")
    issue = read_issue(post.body, post.title, any_package=True)
    script = None
    if issue.script is not None and issue.runnable:
        script = _write(issue, writable_directory(out, option="--out"))
    _show(issue, script, as_json)
    return Exit.FINISHED if script is not None else Exit.INPUT


def issue_named(script: Path | None) -> Reference | None:
    """Return the issue that is named in place of a script, or ``None``."""
    return None if script is None or os.path.exists(script) else reference_in(str(script))


def with_issue(options: Options, reference: Reference) -> tuple[Options, ...]:
    """Fetch an issue, write its scripts, and return the options to run each, in the order to try them.

    The issue gives the script, the torch if none was typed, and the packages; they are only those that are well known
    or that were typed.

    Raises:
        InputError: there is no such issue, or its script cannot be run.
        MachineError: GitHub did not answer.
    """
    with Display(options.verbosity).working("Reading the issue"):
        post = fetch(reference)
    issue = read_issue(post.body, post.title, any_package=True)
    for text in issue.notes:
        say(text, "note: ")
    packages, others = installable(issue.script.packages if issue.script else ())
    typed = {package.partition("=")[0].replace("-", "_") for package in options.packages}
    unknown = [name for name in others if name not in typed]
    missing = [*issue.missing, *(f"the package {name}: give --with {name} if you trust it" for name in unknown)]
    if missing:
        raise InputError(f"{reference} cannot be run. Missing: {'; '.join(missing)}")
    if options.sandbox == "venv":
        click.echo(
            "warning: this script comes from a stranger, and a venv is no sandbox: use --sandbox docker", err=True
        )
    folder = writable_directory(options.out, option="--out")
    torch = options.torch or options.bad or issue.torch
    shared = replace(
        options,
        torch=options.torch if options.torch or options.bad else torch,
        nearest=options.nearest or (options.torch is None and options.bad is None and torch is not None),
        packages=tuple(dict.fromkeys((*options.packages, *packages))),
    )
    return tuple(replace(shared, script=path, workdir=options.out) for path in _write_all(issue, folder))


def _write(issue: Issue, folder: Path) -> Path:
    return _write_all(issue, folder)[0]


def _write_all(issue: Issue, folder: Path) -> list[Path]:
    """Write the scripts of an issue: ``repro.py``, and ``repro-2.py`` where another block may be the one."""
    paths = []
    for number, script in enumerate(issue.scripts, 1):
        path = folder / (SCRIPT if number == 1 else f"repro-{number}.py")
        files.replace_text(path, script.text)
        paths.append(path)
    return paths


def _command(issue: Issue, script: Path) -> str:
    """Return the command that runs the script on the torch that the issue states."""
    words = ["torchbisect", "run", str(script)]
    if issue.torch:
        plain = all(part.isdigit() for part in issue.torch.split("."))
        words += ["--torch", issue.torch, *([] if plain else ["--nearest"])]
    words += [word for package in (issue.script.packages if issue.script else ()) for word in ("--with", package)]
    return shlex.join(words)


def _show(issue: Issue, script: Path | None, as_json: bool) -> None:
    if as_json:
        found: dict[str, Any] = {
            "script": str(script) if script else None,
            "torch": issue.torch,
            "fails_on": list(issue.stated.failing),
            "works_on": list(issue.stated.working),
            "variables": dict(issue.variables.used),
            "python": issue.python,
            "device": issue.device,
            "packages": list(issue.script.packages if issue.script else ()),
            "missing": list(issue.missing),
            "notes": list(issue.notes),
        }
        click.echo(json.dumps(found, indent=2))
        return
    for text in issue.notes:
        say(text, "note: ")
    for text in issue.missing:
        say(text, "missing: ")
    if script is not None:
        click.echo(f"{script} holds the script; run it with\n\n    {_command(issue, script)}\n")
        for number in range(2, len(issue.scripts) + 1):
            other = script.with_name(f"repro-{number}.py")
            click.echo(f"If that shows nothing, {other} is made of other code blocks of the issue.")
