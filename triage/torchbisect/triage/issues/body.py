"""Read an issue's body: its script, the versions it fails on, and what is missing to run it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from torchbisect.bisect.wording import join_names
from torchbisect.reports.sanitize import Markdown, code, prose
from torchbisect.triage.issues.code_blocks import code_blocks, outside_code, sections
from torchbisect.triage.issues.script import IssueScript, find_script, installable

#: GitHub accepts no longer body; the rest of a longer one is not read.
MAX_CHARACTERS = 262_144

#: Identifies the comment with the reply.
FIRST_LINE = "<!-- torchbisect:issue -->"

_VERSION = r"v?(\d+\.\d+(?:\.\d+)?(?:\.dev\d{8}|a0|rc\d+)?(?:\+[\w.]+)?)"
# The most reliable first: the output of collect_env, then of pip and conda, then prose.
_TORCH = tuple(
    re.compile(pattern, re.IGNORECASE | re.MULTILINE)
    for pattern in (
        rf"^[^\w\n]{{0,20}}PyTorch version\W{{1,6}}{_VERSION}",
        rf"^[^\w\n]{{0,20}}\[(?:pip3?|conda)\]\s+torch(?:==|\s+){_VERSION}",
        rf"\btorch\s*==\s*{_VERSION}",
        rf"torch\.__version__\W{{0,8}}(?:is|==|=|:|>)?\W{{0,4}}{_VERSION}",
        rf"^[^\w\n]{{0,20}}(?:py)?torch(?: version)?\W{{1,4}}{_VERSION}\s*$",
        rf"\b(?:py)?torch\s+(?:version\s+)?{_VERSION}",
    )
)
_NIGHTLY = re.compile(r"\bnightl(?:y|ies)\b[^\n]{0,40}?\b(20\d\d)-?(\d\d)-?(\d\d)\b", re.IGNORECASE)
_PYTHON = re.compile(r"\bPython(?: version)?\W{0,4}(3\.\d+(?:\.\d+)?)\b", re.IGNORECASE)
_GPU = re.compile(
    r"^[^\w\n]{0,20}GPU models and configuration\W{1,6}(?:GPU 0:\s*)?(\S[^\n]*)", re.IGNORECASE | re.MULTILINE
)


@dataclass(frozen=True)
class Issue:
    """The contents of an issue's body.

    Attributes:
        script: the script, or ``None`` if nothing in the body could be one.
        torch: the version of torch that the issue states.
        python: the version of Python that the issue states.
        device: ``cuda`` if the script asks for it, else ``cpu``.
        gpu: the reporter's GPU.
        missing: the parts that are missing to run the script, a sentence each; empty if it can run.
        notes: further remarks, a sentence each.
    """

    script: IssueScript | None
    torch: str | None = None
    python: str | None = None
    device: str = "cpu"
    gpu: str | None = None
    missing: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def runnable(self) -> bool:
        """True if there is a script and nothing is missing."""
        return not self.missing


def read_issue(body: str, title: str = "", *, any_package: bool = False) -> Issue:
    """Read an issue's body, without running any of it. Never fails: unreadable parts are reported as missing.

    Args:
        body: the Markdown text.
        title: the title, which is searched for a version only.
        any_package: the caller trusts every import; otherwise the script may need well-known packages only.
    """
    body = body[:MAX_CHARACTERS]
    script = find_script(code_blocks(body))
    parts = sections(body)
    versions = "\n".join(
        part.text for part in parts if re.search(r"version|environment|system info", part.title, re.IGNORECASE)
    )
    elsewhere = f"{body}\n{title}"
    torch = _torch(versions) or _torch(elsewhere)
    return Issue(
        script=script,
        torch=torch,
        python=_first(_PYTHON, versions) or _first(_PYTHON, elsewhere),
        device="cuda" if script and script.cuda else "cpu",
        gpu=_gpu(versions) or _gpu(elsewhere),
        missing=(*_missing(script, body), *(() if any_package else _not_installed(script))),
        notes=tuple(_notes(script, torch)),
    )


def _missing(script: IssueScript | None, body: str) -> list[str]:
    if script is None:
        words = " ".join(outside_code(part.text) for part in sections(body))
        if re.search(r"https?://\S*(?:gist|colab|notebook|\.ipynb|\.py|drive\.|dropbox|/blob/)", words):
            return ["a script in the issue itself: linked code is not read or run"]
        return ["a script: there is no Python code in the issue that could be run"]
    if script.error:
        return [f"a script without syntax errors: the one in the issue fails in {script.error}"]
    missing = []
    if script.unknown:
        missing.append(f"the definition{'s' if len(script.unknown) > 1 else ''} of {join_names(script.unknown)}")
    if script.left_out:
        lines = f"line{'s' if len(script.left_out) > 1 else ''} {join_names([*map(str, script.left_out)])}"
        missing.append(f"the part that was left out at {lines} of the script")
    if not script.compiles:
        missing.append("a call of torch.compile: the script has none")
    return missing


def _not_installed(script: IssueScript | None) -> list[str]:
    unknown = installable(script.packages)[1] if script else ()
    words = f"a script that does not import {join_names(unknown)}: only well-known packages are installed for an issue"
    return [words] if unknown else []


def _notes(script: IssueScript | None, torch: str | None) -> list[str]:
    notes = list(script.notes) if script else []
    if script and script.packages:
        notes.append(f"the script needs {join_names(script.packages)} beside torch")
    if torch is None:
        notes.append("the issue does not state the version of torch")
    return notes


def reply(issue: Issue) -> Markdown:
    """Compose the reply to a new issue: the missing parts, or the fact that its script can run."""
    lines = [FIRST_LINE]
    if issue.missing:
        lines += ["The script of this issue cannot be run yet. Missing:", ""]
        lines += [f"- {prose(words)}" for words in issue.missing]
    else:
        version = f" on torch {code(issue.torch)}" if issue.torch else ""
        lines += [f"The script of this issue can be run{version} ({issue.device})."]
    if issue.notes:
        lines += ["", "Notes:", "", *(f"- {prose(words)}" for words in issue.notes)]
    return Markdown("\n".join(lines) + "\n")


def _first(pattern: re.Pattern[str], text: str) -> str | None:
    found = pattern.search(text)
    return found.group(1) if found else None


def _torch(text: str) -> str | None:
    for pattern in _TORCH:
        version = _first(pattern, text)
        if version:
            return version
    nightly = _NIGHTLY.search(text)
    return "-".join(nightly.groups()) if nightly else None


def _gpu(text: str) -> str | None:
    name = (_first(_GPU, text) or "").strip()
    return name if name.lower() not in ("", "n/a", "no cuda", "none", "could not collect") else None
