"""Read an issue's body: its script, the versions it fails on, and what is missing to run it."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from torchbisect.bisect.wording import join_names
from torchbisect.reports.sanitize import Markdown, code, prose
from torchbisect.triage.issues.body_sections import lines_of, outside_fences, sections
from torchbisect.triage.issues.code_blocks import code_blocks
from torchbisect.triage.issues.find_script import IssueScript, find_scripts
from torchbisect.triage.issues.script_facts import installable
from torchbisect.triage.issues.stated_torch import StatedTorch, stated_torch
from torchbisect.triage.issues.stated_variables import StatedVariables, stated_variables

_Item = TypeVar("_Item")

#: GitHub accepts no longer body; the rest of a longer one is not read.
MAX_CHARACTERS = 65_536
#: The most seconds that reading a body may take.
MAX_SECONDS = 20.0

_PYTHON = re.compile(r"\bPython(?: version)?\W{0,4}(3\.\d{1,2}(?:\.\d{1,2})?)\b", re.IGNORECASE)
_GPU = re.compile(r"[^\w\n]{0,20}GPU models and configuration\W{0,6}", re.IGNORECASE)
_FIRST_GPU = re.compile(r"(?:GPU 0:\s{0,4})?(.{0,200})")
_VERSIONS = re.compile(r"version|environment|system info", re.IGNORECASE)
_PLACES = ("gist", "colab", "notebook", ".ipynb", ".py", "drive.", "dropbox", "/blob/", "/tree/", "pastebin", "godbolt",
           "/files/", ".zip", "kaggle", "huggingface.co/spaces")  # fmt: skip
_MINIFIER = ("run_repro(", "isolate_fails(", "class Repro(")


@dataclass(frozen=True)
class Issue:
    """The contents of an issue's body.

    Attributes:
        scripts: the scripts in the order to try them; empty if nothing in the body could be one.
        stated: the versions of torch that the issue states.
        variables: the environment variables that the issue sets.
        python: the version of Python that the issue states.
        device: ``cuda`` if the script asks for it, else ``cpu``.
        gpu: the reporter's GPU.
        missing: the parts that are missing to run the script, a sentence each; empty if it can run.
        notes: further remarks, a sentence each.
    """

    scripts: tuple[IssueScript, ...] = ()
    stated: StatedTorch = field(default_factory=StatedTorch)
    variables: StatedVariables = field(default_factory=StatedVariables)
    python: str | None = None
    device: str = "cpu"
    gpu: str | None = None
    missing: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def script(self) -> IssueScript | None:
        """The most likely script."""
        return self.scripts[0] if self.scripts else None

    @property
    def torch(self) -> str | None:
        """The version of torch that the issue says it fails on."""
        return self.stated.first

    @property
    def runnable(self) -> bool:
        """True if there is a script and nothing is missing."""
        return not self.missing


class _TooSlow(Exception):
    """Reading a body takes longer than it may."""


def read_issue(body: str, title: str = "", *, any_package: bool = False, seconds: float = MAX_SECONDS) -> Issue:
    """Read an issue's body, without running any of it. Never fails: unreadable parts are reported as missing.

    Args:
        body: the Markdown text.
        title: the title, which is searched for a version only.
        any_package: the caller trusts every import; otherwise the script may need well-known packages only.
        seconds: the most seconds that it may take.
    """
    deadline = time.monotonic() + seconds

    def check() -> None:
        if time.monotonic() > deadline:
            raise _TooSlow

    try:
        return _read(body, title[:1000], any_package, check)
    except _TooSlow:
        return Issue(missing=(f"a body that can be read within {seconds:.0f} s",))


def _read(body: str, title: str, any_package: bool, check: Callable[[], None]) -> Issue:
    too_long = len(body) > MAX_CHARACTERS
    body = body[:MAX_CHARACTERS]
    blocks = list(_checked(code_blocks(body), check))
    variables = stated_variables(body, blocks)
    check()
    scripts = find_scripts(blocks, variables.used)
    check()
    if not any_package:
        scripts = (*scripts[:1], *(other for other in scripts[1:] if not installable(other.packages)[1]))
    script = scripts[0] if scripts else None
    versions = "\n".join(part.text for part in sections(body) if _VERSIONS.search(part.title))
    stated = stated_torch(versions, body, title)
    check()
    elsewhere = f"{body}\n{title}"
    notes = _notes(script, stated, variables)
    if too_long:
        notes.append(f"only the first {MAX_CHARACTERS} characters were read")
    return Issue(
        scripts=scripts,
        stated=stated,
        variables=variables,
        python=_python(versions) or _python(elsewhere),
        device="cuda" if script and script.cuda else "cpu",
        gpu=_gpu(versions) or _gpu(elsewhere),
        missing=(*_missing(script, body), *(() if any_package else _not_installed(script))),
        notes=tuple(notes),
    )


def _checked(blocks: Iterable[_Item], check: Callable[[], None]) -> Iterator[_Item]:
    for block in blocks:
        check()
        yield block


def _missing(script: IssueScript | None, body: str) -> list[str]:
    if script is None:
        words = outside_fences(body).lower().split()
        if any("://" in word and any(place in word for place in _PLACES) for word in words):
            return ["a script in the issue itself: the script is behind a link, and linked code is not read or run"]
        return ["a script: there is no Python code in the issue that could be run"]
    if script.error:
        return [f"a script without syntax errors: the one in the issue fails in {script.error}"]
    missing = []
    if script.unknown:
        missing.append(f"the definition{'s' if len(script.unknown) > 1 else ''} of {join_names(script.unknown)}")
    if script.left_out:
        lines = f"line{'s' if len(script.left_out) > 1 else ''} {join_names([*map(str, script.left_out)])}"
        missing.append(f"the part that was left out at {lines} of the script")
    if script.uncalled:
        missing.append(f"a call of {join_names(script.uncalled)}: the script defines it and never calls it")
    if not script.compiles:
        minified = any(words in script.text for words in _MINIFIER)
        what = "it is the minifier's, which runs inductor by itself" if minified else "the script has none"
        missing.append(f"a call of torch.compile: {what}")
    return missing


def _not_installed(script: IssueScript | None) -> list[str]:
    unknown = installable(script.packages)[1] if script else ()
    words = f"a script that does not import {join_names(unknown)}: only well-known packages are installed for an issue"
    return [words] if unknown else []


def _notes(script: IssueScript | None, stated: StatedTorch, variables: StatedVariables) -> list[str]:
    notes = list(script.notes) if script else []
    if script and script.packages:
        notes.append(f"the script needs {join_names(script.packages)} beside torch")
    if variables.refused:
        notes.append(f"the issue sets {join_names(variables.refused)}, which is not set for a stranger's script")
    if stated.first is None:
        notes.append("the issue does not state the version of torch")
    if len(stated.failing) > 1:
        notes.append(f"the issue states that it fails on torch {join_names(stated.failing)}")
    if stated.working:
        notes.append(f"the issue states that it works on torch {join_names(stated.working)}")
    return notes


def reply(issue: Issue) -> Markdown:
    """Compose the reply to an issue: the missing parts, or the fact that its script can run."""
    lines: list[str] = []
    if issue.missing:
        lines += ["The script of this issue cannot be run yet. Missing:", ""]
        lines += [f"- {prose(words)}" for words in issue.missing]
    else:
        version = f" on torch {code(issue.torch)}" if issue.torch else ""
        lines += [f"The script of this issue can be run{version} ({issue.device})."]
    if issue.notes:
        lines += ["", "Notes:", "", *(f"- {prose(words)}" for words in issue.notes)]
    return Markdown("\n".join(lines) + "\n")


def _python(text: str) -> str | None:
    found = _PYTHON.search(text)
    return found.group(1) if found else None


def _gpu(text: str) -> str | None:
    lines = lines_of(text)
    for line, after in zip(lines, [*lines[1:], ""]):
        if found := _GPU.match(line):
            # With more than one GPU the names begin on the next line.
            name = _FIRST_GPU.match(line[found.end() :].strip() or after.strip())
            words = name.group(1).strip() if name else ""
            return words if words.lower() not in ("", "n/a", "no cuda", "none", "could not collect") else None
    return None
