"""The comparison of a suite's outcomes on two builds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchbisect.probe.suite_run import FAILING, SuiteRun
from torchbisect.triage.suite.outcomes import compare_outcomes, disagreeing, without_flaky

OUTCOMES = ("passed", "failed", "error", "crashed", "timed-out", "skipped", "xfailed", "xpassed")


def run(**tests: str) -> SuiteRun:
    return SuiteRun(tests, {}, 0, "")


@pytest.mark.parametrize(
    ("good", "bad", "kind"),
    [
        ("passed", "failed", "new"),
        ("passed", "crashed", "new"),
        ("passed", "timed-out", "new"),
        ("failed", "failed", "both"),
        ("error", "failed", "both"),
        ("failed", "passed", "fixed"),
        ("skipped", "failed", "one-build"),
        (None, "failed", "one-build"),
        ("failed", None, "fixed"),
        ("passed", "passed", None),
        ("passed", "xpassed", None),
        ("passed", None, None),
    ],
)
def test_only_a_test_that_passes_before_and_fails_after_is_new(good: str | None, bad: str | None, kind: str) -> None:
    before = run(**({"t": good} if good else {}))
    found = compare_outcomes(before, run(**({"t": bad} if bad else {})))
    assert (found.new == ("t",)) is (kind == "new")
    assert [test.kind for test in found.apart] == ([] if kind in ("new", None) else [kind])


def test_a_failure_that_a_second_run_does_not_confirm_is_flaky() -> None:
    good, bad = run(a="passed", b="passed", c="passed", d="passed"), run(a="failed", b="failed", c="failed", d="failed")
    again = run(a="failed", b="passed", c="failed"), run(a="passed", b="passed", c="failed", d="passed")
    found = without_flaky(compare_outcomes(good, bad), again[1], again[0])
    assert found.new == ("a",)
    assert [(test.name, test.kind) for test in found.apart] == [("b", "flaky"), ("c", "flaky"), ("d", "flaky")]


def test_a_test_that_does_not_change_at_an_edge_belongs_to_another_group() -> None:
    before, behind = run(a="passed", b="failed", c="passed"), run(a="failed", b="failed", c="passed")
    assert disagreeing("abc", before, behind) == ("b", "c")


@given(st.dictionaries(st.sampled_from("abcdef"), st.tuples(*[st.none() | st.sampled_from(OUTCOMES)] * 2)))
def test_each_test_is_in_one_place_and_new_ones_pass_before(tests: dict[str, tuple[str | None, str | None]]) -> None:
    good = run(**{name: both[0] for name, both in tests.items() if both[0]})
    bad = run(**{name: both[1] for name, both in tests.items() if both[1]})
    found = compare_outcomes(good, bad)
    places = [*found.new, *(test.name for test in found.apart)]
    assert len(places) == len(set(places))
    assert len(places) + found.agreed == len({**good.tests, **bad.tests})
    assert all(good.tests[name] == "passed" and bad.tests[name] in FAILING for name in found.new)
