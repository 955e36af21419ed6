"""The table of ``--profile``: for each stage, the processes started, the questions, and the seconds of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torchbisect.core.timing import Span

KINDS = ("install", "start", "question", "process")
"""The kinds of parts that a stage is made of; ``core.timing.Span`` explains them."""


_TITLES = ("installs", "agent starts", "questions", "processes")


@dataclass(frozen=True)
class StageProfile:
    """The parts of one stage.

    Attributes:
        title: the stage.
        seconds: its wall time.
        parts: the number and the seconds of each kind of part. Parts may overlap, and start before their stage.
        waiting: seconds in which none of its parts ran.
    """

    title: str
    seconds: float
    parts: dict[str, tuple[int, float]]
    waiting: float


def profile(spans: Sequence[Span]) -> list[StageProfile]:
    """Return the stages in order; a part belongs to the stage in which it ends."""
    stages = sorted((span for span in spans if span.kind == "stage"), key=lambda span: span.began)
    rows = []
    for stage in stages:
        end = stage.began + stage.seconds
        inside = [span for span in spans if span.kind in KINDS and stage.began <= span.began + span.seconds <= end]
        parts = {kind: [span.seconds for span in inside if span.kind == kind] for kind in KINDS}
        busy = _covered([(max(span.began, stage.began), span.began + span.seconds) for span in inside])
        counted = {kind: (len(seconds), sum(seconds)) for kind, seconds in parts.items()}
        rows.append(StageProfile(stage.name, stage.seconds, counted, max(0.0, stage.seconds - busy)))
    return rows


def _covered(intervals: list[tuple[float, float]]) -> float:
    """Return the length of the union of intervals."""
    total, reached = 0.0, float("-inf")
    for begin, end in sorted(intervals):
        total += max(0.0, end - max(begin, reached))
        reached = max(reached, end)
    return total


def profile_lines(spans: Sequence[Span]) -> list[str]:
    """Return the table as text: a line for each stage and one for the sum."""
    rows = profile(spans)
    lines = [f"{'stage':24}{'seconds':>9}" + "".join(f"{title:>16}" for title in _TITLES) + f"{'idle':>9}"]
    for row in rows:
        cells = "".join(
            f"{f'{count} in {seconds:.1f} s' if count else '-':>16}" for count, seconds in row.parts.values()
        )
        lines.append(f"{row.title[:23]:24}{row.seconds:9.1f}{cells}{row.waiting:9.1f}")
    total = sum(row.seconds for row in rows)
    lines.append(f"{'all':24}{total:9.1f}")
    return lines
