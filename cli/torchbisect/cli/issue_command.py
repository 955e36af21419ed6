"""The ``issue`` command: find the script in an issue and write it to a file. Nothing is run."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path

import click

from torchbisect.containers.store.disk import writable_directory
from torchbisect.core.errors import Exit, InputError
from torchbisect.reports import files
from torchbisect.triage.github import API, GitHub, Post, Reference
from torchbisect.triage.issues.body import Issue, read_issue

SCRIPT = "repro.py"


def show_issue_script(reference: str | None, file: Path | None, out: Path, *, as_json: bool) -> int:
    """Find the script of an issue, write it, print how to run it or what is missing, and return the exit code.

    Args:
        reference: ``OWNER/REPO#N``, which is read from GitHub, with the token in ``GITHUB_TOKEN`` if there is one.
        file: a file with the issue as GitHub's API gives it, instead of a reference.
        out: the folder of the script.
        as_json: print the result as JSON.

    Raises:
        InputError: neither or both of the two are given, or there is no such issue.
        MachineError: GitHub did not answer.
    """
    if (reference is None) is (file is None):
        raise InputError("name an issue: either OWNER/REPO#N or --file issue.json")
    post = _from_file(file) if file is not None else _from_github(reference or "")
    issue = read_issue(post.body, post.title, any_package=True)
    script = None
    if issue.script is not None and issue.runnable:
        folder = writable_directory(out, option="--out")
        script = folder / SCRIPT
        files.replace_text(script, issue.script.text)
    _show(issue, script, as_json)
    return Exit.FINISHED if script is not None else Exit.INPUT


def _from_file(file: Path) -> Post:
    try:
        return Post.of(json.loads(file.read_text(encoding="utf-8")))
    except OSError as error:
        raise InputError(f"--file {file}: {error.strerror}; name the issue's JSON") from error
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise InputError(f"--file {file}: not an issue as GitHub's API gives it ({error})") from error


def _from_github(reference: str) -> Post:
    with GitHub(os.environ.get("GITHUB_TOKEN"), base=os.environ.get("GITHUB_API_URL", API)) as github:
        return github.issue(Reference.parse(reference))


def _show(issue: Issue, script: Path | None, as_json: bool) -> None:
    packages = issue.script.packages if issue.script else ()
    if as_json:
        found = {
            "script": str(script) if script else None,
            "torch": issue.torch,
            "python": issue.python,
            "device": issue.device,
            "packages": list(packages),
            "missing": list(issue.missing),
            "notes": list(issue.notes),
        }
        click.echo(json.dumps(found, indent=2))
        return
    for text in issue.notes:
        click.echo(f"note: {text}", err=True)
    for text in issue.missing:
        click.echo(f"missing: {text}", err=True)
    if script is not None:
        words = ["torchbisect", "run", str(script), *(("--torch", issue.torch) if issue.torch else ())]
        words += [word for package in packages for word in ("--with", package)]
        click.echo(f"{script} holds the script; run it with\n\n    {shlex.join(words)}\n")
