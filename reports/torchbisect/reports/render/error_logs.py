"""Error logs cut to what matters to a maintainer: how it began and where it ended, without the many frames between."""

from __future__ import annotations

import re
from collections.abc import Iterator

from torchbisect.reports.escape import clean
from torchbisect.reports.scrub import without_machine

_FRAME = re.compile(r'^( *)File "(.*)", line \d+')
_TRACEBACK = re.compile(r"^\s*(?:[+|] ?)*(?:Exception Group )?Traceback \(most recent call last\):")
# Advice that torch prints with every error, whatever the bug.
_ADVICE = re.compile(
    r"Set TORCHDYNAMO_VERBOSE=1|You can suppress this exception and fall back to eager"
    r"|    import torch\._dynamo$|    torch\._dynamo\.config\.suppress_errors = True$"
)
# torchbisect's own frames, which run the script and say nothing about it.
_OWN = re.compile(r'^ *File "<torchbisect[^"]*>"')
_LIBRARY = re.compile(r'^ *File "(?:…/(?:torch|python3[^/]*)/|<)')
_HEAD_FRAMES, _TAIL_FRAMES, _MIDDLE_FRAMES = 2, 5, 3
_END = 30_000


def cut_log(log: str, lines: int = 60, width: int = 400) -> str:
    """The log with the machine's paths removed and at most ``lines`` lines of at most ``width`` characters.

    Of a traceback the outermost two and the innermost five frames stay, and the last of the script's between; then of
    the whole the first quarter and the last three: a compiled program's log tells what it was asked at the top and what
    went wrong at the bottom. Where something was left out a line says how much.
    """
    kept = [line for line in without_machine(clean(_ends(log))).split("\n") if not _ADVICE.match(line)]
    kept = [line if len(line) <= width else line[: width - 1] + "…" for line in kept]
    kept = list(_without_blank_runs(list(_fewer_frames(kept))))
    if len(kept) <= lines:
        return "\n".join(kept)
    head = max(lines // 4, 1)
    tail = max(lines - head - 1, 1)
    return "\n".join([*kept[:head], f"[… {_count(len(kept) - head - tail, 'line')} left out …]", *kept[-tail:]])


def _ends(log: str) -> str:
    """The log without the middle of what nobody could read through."""
    if len(log) <= 2 * _END:
        return log
    return log[:_END].rpartition("\n")[0] + "\n[… more left out …]\n" + log[-_END:].partition("\n")[2]


def _fewer_frames(lines: list[str]) -> Iterator[str]:
    position = 0
    while position < len(lines):
        yield lines[position]
        position += 1
        if not _TRACEBACK.match(lines[position - 1]):
            continue
        frames, position = _frames(lines, position)
        left_out = 0
        for frame, kept in zip(frames, _telling(frames)):
            if kept and left_out:
                yield f"  [… {_count(left_out, 'frame')} left out …]"
            left_out = 0 if kept else left_out + 1
            yield from frame if kept else ()


def _telling(frames: list[list[str]]) -> list[bool]:
    """Of each frame whether it stays: the outermost, the innermost, and in between the last ones of the script."""
    kept = [number < _HEAD_FRAMES or number >= len(frames) - _TAIL_FRAMES for number in range(len(frames))]
    scripts = [number for number, frame in enumerate(frames) if not kept[number] and not _LIBRARY.match(frame[0])]
    for number in scripts[-_MIDDLE_FRAMES:]:
        kept[number] = True
    return kept


def _frames(lines: list[str], position: int) -> tuple[list[list[str]], int]:
    """The frames of the traceback whose first frame is at ``position``, and where they end."""
    frames: list[list[str]] = []
    while position < len(lines) and (found := _FRAME.match(lines[position])):
        indent = len(found.group(1))
        frame = [lines[position]]
        position += 1
        while position < len(lines) and lines[position].startswith(" " * (indent + 1)):
            frame.append(lines[position])
            position += 1
        if not _OWN.match(frame[0]):
            frames.append(frame)
    return frames, position


def _without_blank_runs(lines: list[str]) -> Iterator[str]:
    while lines and not lines[-1].strip():
        lines = lines[:-1]
    blank = True
    for line in lines:
        if line.strip() or not blank:
            yield line
        blank = not line.strip()


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
