"""The table of ``--profile``."""

from __future__ import annotations

import pytest
from answer_table import Table
from hypothesis import given
from hypothesis import strategies as st
from table_run import Run

from torchbisect.core.timing import Span, collected, timed
from torchbisect.pipeline.profile import profile, profile_lines

SPANS = [
    Span("start", "agent", 0.5, 3.0, "main"),
    Span("question", "observe", 3.5, 1.5, "main"),
    Span("stage", "Observe", 0.0, 6.0, "main"),
    Span("start", "agent", 5.0, 4.0, "torchbisect-spare-agent"),
    Span("question", "observe", 6.0, 2.0, "main"),
    Span("stage", "Localize", 6.0, 4.0, "main"),
]


def test_parts_belong_to_the_stage_in_which_they_end() -> None:
    observe, localize = profile(SPANS)
    assert observe.parts == {"install": (0, 0), "start": (1, 3.0), "question": (1, 1.5), "process": (0, 0)}
    assert observe.waiting == pytest.approx(1.5)
    assert localize.parts["start"] == (1, 4.0)
    assert localize.waiting == pytest.approx(1.0)


def test_the_table_has_a_line_for_each_stage_and_the_sum() -> None:
    lines = profile_lines(SPANS)
    assert [line.split()[0] for line in lines] == ["stage", "Observe", "Localize", "all"]
    assert lines[-1].split()[-1] == "10.0"


def test_a_run_prints_the_table_in_lines(run: Run) -> None:
    said = run(Table({"2.8.0": ["one"]}), command="check", profile=True).said.splitlines()
    (begin,) = (number for number, line in enumerate(said) if line.startswith("stage "))
    assert [line.split()[0] for line in said[begin:]] == ["stage", "Observe", "Localize", "Name", "Report", "all"]


def test_nothing_is_measured_unless_somebody_collects() -> None:
    with timed("question", "observe"):
        pass
    with collected() as spans:
        with timed("question", "observe"):
            pass
        with pytest.raises(KeyError), timed("process", "command"):
            raise KeyError
    with timed("question", "trace"):
        pass
    assert [(span.kind, span.name) for span in spans] == [("question", "observe"), ("process", "command")]


times = st.floats(0, 100)


@given(st.lists(st.tuples(times, times), max_size=8), times, times)
def test_idle_time_lies_between_nothing_and_the_stage(
    parts: list[tuple[float, float]], began: float, long: float
) -> None:
    spans = [Span("question", "observe", start, seconds, "main") for start, seconds in parts]
    (row,) = profile([*spans, Span("stage", "Observe", began, long, "main")])
    assert 0.0 <= row.waiting <= long + 1e-9
