"""Commands for the steps of a GitHub workflow: ``python -m torchbisect.triage.github_actions``.

``read`` runs in a job without write permission and reads a stranger's issue. ``comment`` runs in the job with write
permission. It takes only files from the other jobs, and does not trust them.
"""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path
from typing import Any

import click

from torchbisect.core.command_line import Program
from torchbisect.core.decode import DEFAULT_LIMITS, DecodeError, read_json
from torchbisect.core.errors import InputError
from torchbisect.core.regular_file import read_regular_file
from torchbisect.reports import files
from torchbisect.reports.render import markdown
from torchbisect.reports.render.markdown import LIMIT
from torchbisect.triage.github import ACTIONS_BOT, API, GitHub, Post, Reference
from torchbisect.triage.issues import body
from torchbisect.triage.issues.script_facts import installable

SCRIPT, REPLY, ISSUE = "repro.py", "reply.md", "issue.json"
#: Identifies the comment, which is the reply or the report: under an issue there is one.
FIRST_LINE = markdown.FIRST_LINE
_OLDER_FIRST_LINES = ("<!-- torchbisect:issue -->",)
_EDITED_BEFORE = (
    "The issue was edited after it was labelled, so nothing was run: only a text that somebody has read may run. "
    "Remove the label and set it again to run the new text.\n"
)
_EDITED_SINCE = (
    "The issue was edited after this was asked for. This is about the earlier text (SHA-256 `{}…`). "
    "Remove the label and set it again to run the new text."
)
#: The versions that may reach a command line.
_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+@-]{0,60}")


@click.group(cls=Program)
def main() -> None:
    """Steps of the workflow that bisects an issue."""


@main.command()
@click.argument("issue", type=click.Path(path_type=Path, dir_okay=False))
@click.argument("directory", type=click.Path(path_type=Path, file_okay=False))
@click.option("--event", type=click.Path(path_type=Path), help="The JSON of the event that started the workflow.")
def read(issue: Path, directory: Path, event: Path | None) -> None:
    """Read ISSUE, an issue as JSON of GitHub's API; write its script to DIRECTORY/repro.py and a reply to reply.md.

    The text that somebody labelled is the text that may run. If it was edited since, nothing may run.
    """
    post = _post(issue)
    digest = text_digest(post.body)
    seen = _labelled(event) if event is not None else None
    labelled = text_digest(seen.body) if seen else None
    # A title may state the torch to install, so it too is the one that somebody has read.
    found = body.read_issue(post.body, seen.title if seen else post.title)
    runnable = found.runnable and labelled in (None, digest)
    directory.mkdir(parents=True, exist_ok=True)
    (directory / REPLY).write_text(_reply(post, labelled or digest), encoding="utf-8")
    script = found.script.text.encode("utf-8", "backslashreplace") if found.script and runnable else b""
    if script:
        (directory / SCRIPT).write_bytes(script)
    packages, _ = installable(found.script.packages if found.script else ())
    outputs = {
        "runnable": "true" if runnable else "false",
        "digest": labelled or digest,
        "script-digest": hashlib.sha256(script).hexdigest() if script else "",
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
@click.option("--digest", default="", help="SHA-256 of the issue's text that somebody labelled, as read printed it.")
def comment(reference: str, directory: Path, author: str, api: str, digest: str) -> None:
    """Comment on the issue REFERENCE with the report in DIRECTORY, or with the reply if there is no report.

    There is one comment: later calls edit it. The token is read from GH_TOKEN.
    """
    place = Reference.parse(reference)
    with GitHub(os.environ.get("GH_TOKEN"), base=api, notify=click.echo) as github:
        edited = bool(digest) and text_digest(github.issue(place).body) != digest
        note = _EDITED_SINCE.format(digest[:12]) if edited else ""
        if (directory / files.JSON).is_file():
            # Render the report again: the other job's report.md comes from a job that ran a stranger's code.
            text = markdown.render(files.load(directory), LIMIT - len(note.encode()) - 4)
            first, second, rest = text.split("\n", 2)
            text = f"{first}\n{second}\n{note}\n\n{rest}" if note else text
        else:
            # The other job's text of the reply is not trusted either.
            text = _reply(_post(directory / ISSUE), digest)
            text += f"\n{note}\n" if note and _EDITED_BEFORE not in text else ""
        posted = github.comment_once(place, text, FIRST_LINE, author, older_first_lines=_OLDER_FIRST_LINES)
        click.echo(posted.url)


def text_digest(text: str) -> str:
    """Return the SHA-256 of an issue's text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _labelled(event: Path) -> Post | None:
    """Return the issue in the event of a label, as somebody read it; ``None`` for others, which start no script."""
    data = _json(event)
    if not isinstance(data, dict) or data.get("action") != "labeled":
        return None
    if "issue" not in data:
        raise InputError(f"{event} is the event of a label, and holds no issue: give the event as GitHub wrote it")
    return Post.of(data["issue"])


def _reply(post: Post, digest: str) -> str:
    """Return the reply to an issue; ``digest`` is that of the text that somebody labelled, or empty."""
    edited = bool(digest) and text_digest(post.body) != digest
    return f"{FIRST_LINE}\n{_EDITED_BEFORE if edited else body.reply(body.read_issue(post.body, post.title))}"


def _post(path: Path) -> Post:
    """Read an issue in the JSON of GitHub's API."""
    return Post.of(_json(path))


def _json(path: Path) -> Any:
    try:
        return read_json(read_regular_file(path, DEFAULT_LIMITS.size))
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error
    except DecodeError as error:
        raise InputError(f"{path} is not JSON: give an issue in the form of GitHub's API") from error


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
    """Run the command and end this process; ``examples/github/steps.py`` calls it."""
    main()


if __name__ == "__main__":
    run()
