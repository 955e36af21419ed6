"""Where issues come from: a file of them, a search on GitHub, a folder of scripts. Nothing here runs any of it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from torchbisect.core.errors import InputError
from torchbisect.core.retry import Notify
from torchbisect.pipeline.script_input import read_script
from torchbisect.triage.github import API, GitHub, Post
from torchbisect.triage.issues.body import read_issue
from torchbisect.triage.issues.packages import installable
from torchbisect.triage.jobs import Job

_ADDRESS = re.compile(r"https://[\w.-]+/([\w.-]+/[\w.-]+)/(?:issues|pull)/(\d+)")
_RELEASE = re.compile(r"\d+\.\d+\.\d+")


def jobs_from(place: Path) -> list[Job]:
    """The jobs in a file of issues, or in a folder of scripts.

    Raises:
        InputError: there is neither.
    """
    try:
        found = list(_scripts(place)) if place.is_dir() else list(_issues(place))
    except OSError as error:
        raise InputError(f"{place} can't be read: {error.strerror}; name a file of issues or a folder") from error
    if not found:
        raise InputError(f"{place}: " + ("no *.py in it" if place.is_dir() else "no issue in it, one a line"))
    return _told_apart(found)


def jobs_searched(query: str, most: int, notify: Notify) -> list[Job]:
    """The jobs that GitHub's search finds (with the token in ``GITHUB_TOKEN``, if there is one).

    Raises:
        InputError: GitHub does not take the query, or finds nothing.
        MachineError: GitHub does not answer.
    """
    base = os.environ.get("GITHUB_API_URL", API)
    wanted = query if re.search(r"\b(?:is|type):(?:issue|pr)", query) else f"{query} is:issue"
    with GitHub(os.environ.get("GITHUB_TOKEN"), base=base, notify=notify) as github:
        found = [_job(post, f"#{post.identity}") for post in github.search(wanted, most)]
    if not found:
        raise InputError(f"the search {wanted!r} finds no issue: try it on GitHub")
    return _told_apart(found)


def _scripts(folder: Path) -> Iterator[Job]:
    for path in sorted(folder.rglob("*.py")):
        name = path.relative_to(folder).as_posix()
        try:
            yield Job(name, source=read_script(path), path=str(path.resolve()))
        except InputError as error:
            yield Job(name, trouble=str(error))


def _issues(file: Path) -> Iterator[Job]:
    """One issue a line, as GitHub's API or ``gh issue list --json number,title,body,url`` gives it; or one list."""
    text = file.read_text(encoding="utf-8-sig", errors="replace")
    if text.lstrip().startswith("["):
        try:
            given: Iterable[tuple[int, Any]] = enumerate(json.loads(text), 1)
        except ValueError as error:
            raise InputError(f"{file} is no JSON: {error}") from error
        yield from (_read(data, f"issue {number}") for number, data in given)
        return
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                data = json.loads(line)
            except (ValueError, RecursionError) as error:
                yield Job(f"line {number}", trouble=f"line {number} of {file.name} is no JSON: {error}")
            else:
                yield _read(data, f"line {number}")


def _read(data: Any, where: str) -> Job:
    try:
        data = {"html_url": data.get("url"), **data} if isinstance(data, dict) else data
        post = Post.of(data)
    except InputError as error:
        return Job(where, trouble=f"{where}: {error}")
    return _job(post, f"#{post.identity}")


def _job(post: Post, name: str) -> Job:
    """The job of an issue as people write them."""
    place = _ADDRESS.match(post.url)
    if place:
        name = f"{place.group(1)}#{place.group(2)}"
    issue = read_issue(post.body, post.title)
    packages = installable(issue.script.packages if issue.script else ())[0]
    torch = issue.torch if issue.torch and _RELEASE.fullmatch(issue.torch) else None
    known = Job(name, post.title, post.url, torch=torch, packages=packages)
    if issue.script is None or issue.missing:
        return replace(known, trouble="missing: " + "; ".join(issue.missing))
    return replace(known, source=issue.script.text)


def _told_apart(jobs: Iterable[Job]) -> list[Job]:
    """One job a name: what comes twice in the same words is one issue, and of two that differ the later is newer."""
    return list({job.name: job for job in jobs}.values())
