"""Read issues from a file, from a search on GitHub, or from a folder of scripts; nothing is run here."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from torchbisect.core.decode import DecodeError, read_json
from torchbisect.core.errors import InputError
from torchbisect.core.folders import walk_folder
from torchbisect.core.regular_file import read_regular_file
from torchbisect.core.retry import Notify
from torchbisect.pipeline.script import read_script
from torchbisect.triage.github import API, GitHub, Post
from torchbisect.triage.issues.body import read_issue
from torchbisect.triage.issues.script_facts import installable
from torchbisect.triage.jobs import IssueJob

#: Bytes of a file of issues; a thousand of the longest issues have fewer.
_MOST_BYTES = 64 << 20
_ADDRESS = re.compile(r"https://[\w.-]+/([\w.-]+/[\w.-]+)/(?:issues|pull)/(\d+)")


def jobs_from(place: Path) -> list[IssueJob]:
    """Read the jobs from a file of issues, or from a folder of scripts.

    Raises:
        InputError: there is no issue and no script.
    """
    try:
        found = list(_scripts(place)) if place.is_dir() else list(_issues(place))
    except OSError as error:
        raise InputError(f"{place} cannot be read: {error.strerror}; name a file of issues or a folder") from error
    if not found:
        missing = "there is no *.py in it" if place.is_dir() else "there is no issue in it; write one a line"
        raise InputError(f"{place}: {missing}")
    return _without_duplicates(found)


def jobs_searched(query: str, most: int, notify: Notify) -> list[IssueJob]:
    """Search GitHub for jobs, with the token in ``GITHUB_TOKEN`` if there is one.

    Raises:
        InputError: GitHub rejects the query, or finds nothing.
        MachineError: GitHub does not answer.
    """
    base = os.environ.get("GITHUB_API_URL", API)
    wanted = query if re.search(r"\b(?:is|type):(?:issue|pr)", query) else f"{query} is:issue"
    with GitHub(os.environ.get("GITHUB_TOKEN"), base=base, notify=notify) as github:
        found = [_job_from_post(post, f"#{post.identity}") for post in github.search(wanted, most)]
    if not found:
        raise InputError(f"the search {wanted!r} finds no issue: try it on GitHub")
    return _without_duplicates(found)


def _scripts(folder: Path) -> Iterator[IssueJob]:
    found = (Path(place, name) for place, _, names in walk_folder(folder) for name in names if name.endswith(".py"))
    for path in sorted(found):
        name = path.relative_to(folder).as_posix()
        try:
            yield IssueJob(name, source=read_script(path), path=str(path.resolve()))
        except InputError as error:
            yield IssueJob(name, problem=str(error))


def _issues(file: Path) -> Iterator[IssueJob]:
    """Read JSON lines or a JSON list, as GitHub's API or ``gh issue list --json number,title,body,url`` writes them."""
    text = read_regular_file(file, _MOST_BYTES).decode("utf-8-sig", "replace")
    if text.lstrip().startswith("["):
        try:
            items: Iterable[tuple[int, Any]] = enumerate(read_json(text), 1)
        except DecodeError as error:
            raise InputError(f"{file} is not JSON: {error}; write a list of issues, or one a line") from error
        yield from (_job_from_json(data, f"issue {number}") for number, data in items)
        return
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                data = read_json(line)
            except DecodeError as error:
                yield IssueJob(f"line {number}", problem=f"line {number} of {file.name} is not JSON: {error}")
            else:
                yield _job_from_json(data, f"line {number}")


def _job_from_json(data: Any, where: str) -> IssueJob:
    try:
        data = {"html_url": data.get("url"), **data} if isinstance(data, dict) else data
        post = Post.of(data)
    except InputError as error:
        return IssueJob(where, problem=f"{where}: {error}")
    return _job_from_post(post, f"#{post.identity}")


def _job_from_post(post: Post, name: str) -> IssueJob:
    """Return the job of an issue."""
    place = _ADDRESS.match(post.url)
    if place:
        name = f"{place.group(1)}#{place.group(2)}"
    issue = read_issue(post.body, post.title)
    imports = [package for script in issue.scripts for package in script.packages]
    packages = tuple(dict.fromkeys(installable(imports)[0]))
    known = IssueJob(name, post.title, post.url, torch=issue.torch, packages=packages)
    if issue.script is None or issue.missing:
        return replace(known, problem="missing: " + "; ".join(issue.missing))
    return replace(known, source=issue.script.text, others=tuple(script.text for script in issue.scripts[1:]))


def _without_duplicates(jobs: Iterable[IssueJob]) -> list[IssueJob]:
    """Keep one job a name: the last one, because it is the newest."""
    return list({job.name: job for job in jobs}.values())
