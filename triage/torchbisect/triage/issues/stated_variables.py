"""Read the environment variables that an issue sets: on its command lines, by ``export``, and in its sentences."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from torchbisect.probe.script_variables import is_allowed, is_for_logs
from torchbisect.triage.issues.body_sections import lines_of, outside_fences
from torchbisect.triage.issues.code_blocks import CodeBlock
from torchbisect.triage.issues.statements import clauses

_SETTING = re.compile(
    r"(?<![\w$./\"'\[-])(?P<name>[A-Z][A-Z0-9_]{3,60})="
    r"(?P<quote>[\"']?)(?P<value>[A-Za-z0-9:][\w.,:+-]{0,80}|(?=[\s\"'`]|$))(?P=quote)(?![\w/=(])"
)
# What comes before a program on a command line, or after ``export``.
_COMMAND = re.compile(r"\b(?:python[\d.]{0,5}|torchrun|pytest|ipython)\b|^\s{0,12}(?:[$#>]\s)?(?:export|set|%env)\s")
# Torch's own advice in its messages.
_ADVICE = ("you can set", "consider ", "please do this", "you can suppress", "to include these", "stack trace")
#: The most variables that are kept, and the most characters of a line that are read.
_MOST, _MOST_CHARACTERS = 12, 1_000


@dataclass(frozen=True)
class StatedVariables:
    """The environment variables that an issue sets.

    Attributes:
        used: the pairs of a name and a value that its script should run with.
        refused: the names of those that are not set for a stranger's script, or that only change what is logged.
    """

    used: tuple[tuple[str, str], ...] = ()
    refused: tuple[str, ...] = ()


def stated_variables(body: str, blocks: Iterable[CodeBlock]) -> StatedVariables:
    """Read the variables of an issue; a command line counts before a sentence, and the first before a later one."""
    commands = (line for block in blocks for line in lines_of(block.text) if _COMMAND.search(line[:_MOST_CHARACTERS]))
    prose = lines_of(outside_fences(body))
    found: dict[str, str] = {}
    refused: dict[str, None] = {}
    for name, value in [*_in_commands(commands), *_in_sentences(prose)]:
        if is_for_logs(name) or not is_allowed(name, value):
            refused.setdefault(name)
        elif name not in found and len(found) < _MOST:
            found[name] = value
    named = tuple(name for name in refused if name not in found and not is_for_logs(name))
    return StatedVariables(tuple(found.items()), named[:_MOST])


def _in_commands(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    for line in (text[:_MOST_CHARACTERS] for text in lines):
        program = _COMMAND.search(line)
        exported = program is not None and not program.group().startswith(("py", "tor", "ipy"))
        part = line if exported or program is None else line[: program.start()]
        yield from ((match["name"], match["value"]) for match in _SETTING.finditer(part))


def _in_sentences(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the variables that sentences set, except those with which they say that it works."""
    for line in (text[:_MOST_CHARACTERS] for text in lines):
        low = line.lower()
        if "=" not in line or any(words in low for words in _ADVICE):
            continue
        matches = list(_SETTING.finditer(line))
        parts = clauses(line) if matches else []
        for match in matches:
            own = next((part for part in parts if match.start() <= part.end), None)
            if own is None or own.works is not True:
                yield match["name"], match["value"]
