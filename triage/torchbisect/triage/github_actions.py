"""Commands for the steps of a GitHub workflow: ``python -m torchbisect.triage.github_actions``.

``read`` runs in a job without write permission and reads a stranger's issue. ``comment`` runs in the job with write
permission. It takes only files from the other jobs, and does not trust them.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import click

from torchbisect.core.errors import InputError, TorchbisectError
from torchbisect.reports import files
from torchbisect.reports.render import markdown
from torchbisect.triage.github import ACTIONS_BOT, API, GitHub, Post, Reference
from torchbisect.triage.issues import body
from torchbisect.triage.issues.script import installable

SCRIPT, REPLY, ISSUE = "repro.py", "reply.md", "issue.json"
#: The versions that may reach a command line.
_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,60}")


@click.group()
def main() -> None:
    """Steps of the workflow that bisects an issue."""


@main.command()
@click.argument("issue", type=click.Path(path_type=Path, dir_okay=False))
@click.argument("directory", type=click.Path(path_type=Path, file_okay=False))
def read(issue: Path, directory: Path) -> None:
    """Read ISSUE, an issue as JSON of GitHub's API; write its script to DIRECTORY/repro.py and a reply to reply.md."""
    found = _issue(issue)
    directory.mkdir(parents=True, exist_ok=True)
    (directory / REPLY).write_text(body.reply(found), encoding="utf-8")
    if found.script and found.runnable:
        (directory / SCRIPT).write_text(found.script.text, encoding="utf-8", errors="backslashreplace")
    packages, _ = installable(found.script.packages if found.script else ())
    outputs = {
        "runnable": "true" if found.runnable else "false",
        "torch": _version_or_nothing(found.torch),
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
    """Set the outputs of a run that wrote to DIRECTORY, and put its report on the summary page of the workflow."""
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
@click.option("--author", default=ACTIONS_BOT, show_default=True, help="The account that the token writes as.")
@click.option("--api", default=API, show_default=True, help="The address of GitHub's API.")
def comment(reference: str, directory: Path, author: str, api: str) -> None:
    """Comment on the issue REFERENCE with the report in DIRECTORY, or with the reply if there is no report.

    There is one comment: later calls edit it. The token is read from GH_TOKEN.
    """
    place = Reference.parse(reference)
    if (directory / files.JSON).is_file():
        # Render the report again: the other job's report.md comes from a job that ran a stranger's code.
        text, first_line = markdown.render(files.load(directory)), markdown.FIRST_LINE
    else:
        # The other job's text of the reply is not trusted either.
        text, first_line = body.reply(_issue(directory / ISSUE)), body.FIRST_LINE
    with GitHub(os.environ.get("GH_TOKEN"), base=api, notify=click.echo) as github:
        click.echo(github.comment_once(place, text, first_line, author).url)


def _issue(path: Path) -> body.Issue:
    """Read an issue in the JSON of GitHub's API."""
    try:
        post = Post.of(json.loads(path.read_bytes()))
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not JSON: give an issue in the form of GitHub's API") from error
    return body.read_issue(post.body, post.title)


def _version_or_nothing(text: str | None) -> str:
    """Return the text if it is a plain version, else an empty text: a shell may see it."""
    return text if text and _VERSION.fullmatch(text) else ""


def _output(values: dict[str, str]) -> None:
    """Write the outputs of a workflow's step; none of the values has a newline."""
    place = os.environ.get("GITHUB_OUTPUT")
    if place:
        with open(place, "a", encoding="utf-8") as file:
            file.writelines(f"{name}={value}\n" for name, value in values.items())


def run() -> None:
    """Run the command; an expected error becomes one line and its exit code."""
    try:
        main(standalone_mode=True)
    except TorchbisectError as error:
        click.echo(f"torchbisect: {error}", err=True)
        raise SystemExit(error.exit_code) from None


if __name__ == "__main__":
    run()
