"""Geometry of the charts."""

from __future__ import annotations

import itertools
import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from torchbisect.reports.model.report import ReductionStep
from torchbisect.reports.model.search_results import BisectReport, BuildVerdict, Regression
from torchbisect.reports.render.charts import curve, heat, histogram, round_steps, timeline


@given(st.lists(st.text("ab1.", min_size=1, max_size=6), unique=True, min_size=1, max_size=60), st.data())
def test_the_timeline_has_every_build_in_its_order(names: list[str], data: st.DataObject) -> None:
    asked = data.draw(st.lists(st.sampled_from(names), unique=True))
    verdicts = [data.draw(st.sampled_from(["good", "bad", "untestable"])) for _ in asked]
    ends = data.draw(st.tuples(st.none() | st.sampled_from(names), st.none() | st.sampled_from(names)))
    bisect = BisectReport(
        regression=Regression(*ends),
        tested=tuple(BuildVerdict(name, verdict) for name, verdict in zip(asked, verdicts)),
        listed=tuple(names),
    )
    drawn = timeline(bisect, {})
    assert [mark.label for mark in drawn.marks] == names
    assert {mark.label: mark.kind for mark in drawn.marks if mark.kind != "untested"} == dict(zip(asked, verdicts))
    places = [mark.x for mark in drawn.marks]
    assert places == sorted(set(places))
    assert places[-1] < drawn.width
    named = [mark.x for mark in drawn.marks if mark.named]
    assert all(right - left >= 24 for left, right in itertools.pairwise(named))
    if ends[1] is not None:
        assert next(mark for mark in drawn.marks if mark.label == ends[1]).named


@given(st.lists(st.tuples(st.integers(0, 500), st.integers(0, 9000)), min_size=2, max_size=30))
def test_the_curve_stays_in_its_chart(points: list[tuple[int, int]]) -> None:
    drawn = curve([ReductionStep(asked, 0.0, size) for asked, size in points], 500)
    assert drawn is not None
    across = [float(x) for x in re.findall(r"[MH]([\d.-]+)", drawn.path)]
    up = [float(y) for y in re.findall(r"(?:V|M[\d.]+ )([\d.-]+)", drawn.path)]
    assert all(0 <= x <= drawn.width for x in across)
    assert all(0 <= y <= drawn.height for y in up)


def test_no_curve_of_one_point() -> None:
    assert curve([ReductionStep(0, 0.0, 100)], 3) is None


@given(st.floats(0.001, 1e9))
def test_steps_are_round_and_within(top: float) -> None:
    steps = round_steps(top)
    assert 2 <= len(steps) <= 6
    assert 0 == steps[0] < steps[-1] <= top * 1.001


@given(
    st.dictionaries(
        st.sampled_from(["histogram", "map"]),
        st.recursive(
            st.none() | st.floats() | st.integers() | st.text(max_size=3),
            lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["edges", "counts"]), inner),
        ),
    )
)
def test_malformed_figures_do_not_break_the_charts(details: dict[str, Any]) -> None:
    assert all(bar.height >= -1e9 for bar in histogram(details))
    assert all(0 <= float(cell.label) <= 1 for cell in heat(details))


def test_a_histogram_and_a_map() -> None:
    bars = histogram({"histogram": {"edges": [0, 1, 2], "counts": [3, 6]}})
    assert [round(bar.height / bars[1].height, 2) for bar in bars] == [0.5, 1.0]
    cells = heat({"map": [[0, 1], [0.5, 2]]})
    assert [cell.label for cell in cells] == ["0.000", "1.000", "0.500", "1.000"]


def test_one_number_has_no_histogram() -> None:
    assert histogram({"histogram": {"edges": [0, 1, 2], "counts": [0, 1]}}) == ()
    assert histogram({"histogram": {"edges": [0, 1, 2], "counts": [1, 1]}}) != ()
