"""An issue's body read as people write it: the script to run, where it fails, and what is missing if there is none."""

from __future__ import annotations

import re
from dataclasses import dataclass

from torchbisect.bisect.wording import join_names
from torchbisect.reports.escape import Markdown, code, prose
from torchbisect.triage.issues.code_blocks import blocks, outside_code, sections
from torchbisect.triage.issues.packages import installable
from torchbisect.triage.issues.script import Script, find_script
from torchbisect.triage.issues.versions import Stated, stated

#: GitHub takes no longer body; what is longer comes from elsewhere and isn't read to its end.
LONGEST = 262_144

#: By this a reply is found again.
FIRST_LINE = "<!-- torchbisect:issue -->"


@dataclass(frozen=True)
class Issue:
    """What an issue's body holds.

    Attributes:
        script: the script, or ``None`` if nothing in the body could be one.
        torch: the version of torch that it says it fails on.
        python: the version of Python that it says it was run with.
        device: ``cuda`` if the script asks for it or the reporter has it and the script leaves it open, else ``cpu``.
        gpu: the reporter's GPU.
        missing: what has to be there before it can be run, a sentence each; empty if it can be.
        notes: what is worth knowing beside that, a sentence each.
    """

    script: Script | None
    torch: str | None = None
    python: str | None = None
    device: str = "cpu"
    gpu: str | None = None
    missing: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def runnable(self) -> bool:
        """Whether there is a script with nothing missing."""
        return not self.missing


def read_issue(body: str, title: str = "", *, any_package: bool = False) -> Issue:
    """Read an issue's body. Never runs any of it, and never fails: what can't be read is missing.

    Args:
        body: as its writer wrote it, Markdown.
        title: read for a version only.
        any_package: somebody answers for whatever the script imports; else it may need well-known packages only.
    """
    body = body[:LONGEST]
    script = find_script(blocks(body))
    parts = sections(body)
    versions = "\n".join(
        part.text for part in parts if re.search(r"version|environment|system info", part.title, re.IGNORECASE)
    )
    where: Stated = stated(versions, f"{body}\n{title}")
    return Issue(
        script=script,
        torch=where.torch,
        python=where.python,
        device="cuda" if script and script.cuda else "cpu",
        gpu=where.gpu,
        missing=(*_missing(script, body), *(() if any_package else _not_installed(script))),
        notes=tuple(_notes(script, where)),
    )


def _missing(script: Script | None, body: str) -> list[str]:
    if script is None:
        words = " ".join(outside_code(part.text) for part in sections(body))
        if re.search(r"https?://\S*(?:gist|colab|notebook|\.ipynb|\.py|drive\.|dropbox|/blob/)", words):
            return ["a script in the issue itself: what stands behind a link is not read or run"]
        return ["a script: there is no Python code in the issue that could be run"]
    if script.error:
        return [f"a script that is Python: the one in the issue stops being that in {script.error}"]
    missing = []
    if script.unknown:
        missing.append(
            f"where {join_names(script.unknown)} come{'s' if len(script.unknown) == 1 else ''} from: never defined"
        )
    if script.left_out:
        lines = [str(number) for number in script.left_out]
        missing.append(
            f"the part that was left out at line{'s' if len(lines) > 1 else ''} {join_names(lines)} of the script"
        )
    if not script.compiles:
        missing.append("a call of torch.compile: the script has none")
    return missing


def _not_installed(script: Script | None) -> list[str]:
    unknown = installable(script.packages)[1] if script else ()
    return (
        [f"a script without {join_names(unknown)}: only well-known packages are installed for an issue"]
        if unknown
        else []
    )


def _notes(script: Script | None, where: Stated) -> list[str]:
    notes = list(script.notes) if script else []
    if script and script.packages:
        notes.append(f"it needs {join_names(script.packages)} beside torch")
    if where.torch is None:
        notes.append("it does not say which torch it fails on")
    return notes


def reply(issue: Issue) -> Markdown:
    """What to answer under a new issue: what is missing, or what would be run. Foreign words are made safe."""
    lines = [FIRST_LINE]
    if issue.missing:
        lines += ["This issue can't be run as it stands. What is missing:", ""]
        lines += [f"- {prose(words)}" for words in issue.missing]
    else:
        fails = f" on torch {code(issue.torch)}" if issue.torch else ""
        lines += [f"There is a script here that can be run{fails} ({issue.device})."]
    if issue.notes:
        lines += ["", "Noted:", "", *(f"- {prose(words)}" for words in issue.notes)]
    return Markdown("\n".join(lines) + "\n")
