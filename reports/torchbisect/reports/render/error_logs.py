"""Cut error logs to the parts that a maintainer needs: the start, the end, and few frames between."""

from __future__ import annotations

import re
from collections.abc import Iterator

from torchbisect.core.printable import clean
from torchbisect.reports.sanitize import without_machine_paths

_FRAME = re.compile(r'^( *)File "(.*)", line \d+')
_TRACEBACK = re.compile(r"^\s*(?:[+|] ?)*(?:Exception Group )?Traceback \(most recent call last\):")
# Advice that torch prints with every error.
_ADVICE = re.compile(
    r"Set TORCHDYNAMO_VERBOSE=1|You can suppress this exception and fall back to eager"
    r"|    import torch\._dynamo$|    torch\._dynamo\.config\.suppress_errors = True$"
)
# Frames of torchbisect itself, which run the script.
_OWN = re.compile(r'^ *File "<torchbisect[^"]*>"')
_LIBRARY = re.compile(r'^ *File "(?:…/(?:torch|python3[^/]*)/|<)')
_HEAD_FRAMES, _TAIL_FRAMES, _MIDDLE_FRAMES = 2, 5, 3
_END = 30_000


def cut_log(log: str, lines: int = 60, width: int = 400) -> str:
    """Return the log without the machine's paths, in at most ``lines`` lines of at most ``width`` characters.

    Of a traceback, the two outermost and five innermost frames stay, and the last frames of the script between them.
    Of the whole log, the first quarter of the lines and the last three quarters stay: the top shows the command and
    the bottom the error. A line tells how much was left out at each cut.
    """
    kept = [line for line in without_machine_paths(clean(_without_middle(log))).split("\n") if not _ADVICE.match(line)]
    kept = [line if len(line) <= width else line[: width - 1] + "…" for line in kept]
    kept = list(_without_blank_runs(list(_fewer_frames(kept))))
    if len(kept) <= lines:
        return "\n".join(kept)
    head = max(lines // 4, 1)
    tail = max(lines - head - 1, 1)
    return "\n".join([*kept[:head], f"[… {_count(len(kept) - head - tail, 'line')} left out …]", *kept[-tail:]])


def _without_middle(log: str) -> str:
    """Drop the middle of a very long log."""
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
        for frame, kept in zip(frames, _frames_to_keep(frames)):
            if kept and left_out:
                yield f"  [… {_count(left_out, 'frame')} left out …]"
            left_out = 0 if kept else left_out + 1
            yield from frame if kept else ()


def _frames_to_keep(frames: list[list[str]]) -> list[bool]:
    """Mark the frames that stay: the outermost, the innermost, and between them the last ones of the script."""
    middle = range(_HEAD_FRAMES, len(frames) - _TAIL_FRAMES)
    scripts = [number for number in middle if not _LIBRARY.match(frames[number][0])][-_MIDDLE_FRAMES:]
    return [number not in middle or number in scripts for number in range(len(frames))]


def _frames(lines: list[str], position: int) -> tuple[list[list[str]], int]:
    """Return the frames of the traceback whose first frame is at ``position``, and the position after them."""
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
        lines.pop()
    blank = True
    for line in lines:
        if line.strip() or not blank:
            yield line
        blank = not line.strip()


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
