"""What the steps of a GitHub workflow call: ``python -m torchbisect.triage.github_actions``.

``read`` runs in the job that has no token and reads a stranger's issue; ``comment`` runs in the job that has one and
takes nothing from the first but files, which it treats as a stranger's too.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import click

from torchbisect.core.errors import InputError, TorchbisectError
from torchbisect.reports import files, marker
from torchbisect.reports.render import markdown
from torchbisect.triage.github import ACTIONS_BOT, API, GitHub, Post, Reference
from torchbisect.triage.issues import body
from torchbisect.triage.issues.packages import installable

SCRIPT, REPLY = "repro.py", "reply.md"
#: What a version may look like before it goes on a command line.
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,60}")


@click.group()
def main() -> None:
    """Steps of the workflow that bisects an issue."""


@main.command()
@click.argument("issue", type=click.Path(path_type=Path, dir_okay=False))
@click.argument("directory", type=click.Path(path_type=Path, file_okay=False))
def read(issue: Path, directory: Path) -> None:
    """Find the script in ISSUE, the JSON of one as GitHub's API gives it; write repro.py and reply.md to DIRECTORY."""
    post = Post.of(_json(issue))
    found = body.read_issue(post.body, post.title)
    directory.mkdir(parents=True, exist_ok=True)
    (directory / REPLY).write_text(body.reply(found), encoding="utf-8")
    if found.script and found.runnable:
        (directory / SCRIPT).write_text(found.script.text, encoding="utf-8", errors="backslashreplace")
    packages, _ = installable(found.script.packages if found.script else ())
    outputs = {
        "runnable": "true" if found.runnable else "false",
        "torch": _plain(found.torch),
        "device": found.device,
        "packages": " ".join(packages),
    }
    _output(outputs)
    for name, value in outputs.items():
        click.echo(f"{name}: {value}")


@main.command()
@click.argument("directory", type=click.Path(path_type=Path))
@click.option("--status", type=int, required=True, help="The exit status of torchbisect.")
def outcome(directory: Path, status: int) -> None:
    """Tell the workflow how a run that wrote to DIRECTORY ended, and show its report on the run's summary page."""
    report = files.load(directory) if (directory / files.JSON).is_file() else None
    _output(
        {
            "status": str(status),
            "verdict": report.verdict if report else "",
            "report": str(directory) if "\n" not in str(directory) else "",
        }
    )
    summary = os.environ.get("GITHUB_STEP_SUMMARY")
    if report and summary:
        with open(summary, "a", encoding="utf-8") as file:
            file.write(markdown.render(report))


@main.command()
@click.argument("reference")
@click.argument("directory", type=click.Path(path_type=Path, file_okay=False))
@click.option("--author", default=ACTIONS_BOT, show_default=True, help="Who the token writes as.")
@click.option("--api", default=API, show_default=True, help="The address of GitHub's API.")
def comment(reference: str, directory: Path, author: str, api: str) -> None:
    """Write the report in DIRECTORY under the issue REFERENCE, or the reply if there is no report.

    One comment, edited later and never a second. The token is read from GH_TOKEN.
    """
    place = Reference.parse(reference)
    if (directory / files.JSON).is_file():
        # Rendered here and now: the other job's report.md was made where a stranger's code had run.
        text, first_line = markdown.render(files.load(directory)), marker.FIRST_LINE
    else:
        text, first_line = _reply(directory / REPLY), body.FIRST_LINE
    with GitHub(os.environ.get("GH_TOKEN"), base=api, notify=click.echo) as github:
        click.echo(github.comment_once(place, text, first_line, author).url)


def _reply(path: Path) -> str:
    """A reply is read anew from the issue's own JSON beside it, never taken over as text."""
    post = Post.of(_json(path.with_name("issue.json")))
    return body.reply(body.read_issue(post.body, post.title))


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except OSError as error:
        raise InputError(f"{path} can't be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is no JSON: give an issue as GitHub's API gives it") from error


def _plain(text: str | None) -> str:
    """The text if it is a plain word, else nothing: it goes where a shell could see it."""
    return text if text and _PLAIN.fullmatch(text) else ""


def _output(values: dict[str, str]) -> None:
    """Outputs of a workflow's step; no value here has a line end in it."""
    place = os.environ.get("GITHUB_OUTPUT")
    if place:
        with open(place, "a", encoding="utf-8") as file:
            file.writelines(f"{name}={value}\n" for name, value in values.items())


def run() -> None:
    """Run the command; a known trouble is one line and its exit code."""
    try:
        main(standalone_mode=True)
    except TorchbisectError as error:
        click.echo(f"torchbisect: {error}", err=True)
        raise SystemExit(error.exit_code) from None


if __name__ == "__main__":
    run()
