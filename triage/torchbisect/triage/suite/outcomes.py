"""Compare the outcomes of a suite on two builds: new failures, and those that are no evidence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from torchbisect.probe.suite_run import FAILING, SuiteRun

#: The kinds of tests that are named apart, with what is said about each.
APART = {
    "both": "fails on both builds",
    "flaky": "does not fail each time",
    "fixed": "fails on the good build only",
    "one-build": "ran on one of the builds only",
    "not-compiled": "fails on the bad build for another reason than torch.compile",
}


@dataclass(frozen=True)
class ApartTest:
    """A test that does not count, with its kind and one line of why."""

    name: str
    kind: str
    reason: str


@dataclass(frozen=True)
class Difference:
    """The comparison of two runs of a suite.

    Attributes:
        new: the tests that pass on the good build and fail on the bad one, in their order.
        apart: the tests that fail somewhere and do not count.
        agreed: the number of tests that fail on neither.
    """

    new: tuple[str, ...] = ()
    apart: tuple[ApartTest, ...] = field(default=())
    agreed: int = 0


def compare_outcomes(good: SuiteRun, bad: SuiteRun) -> Difference:
    """Compare the first runs of a suite on the good and on the bad build."""
    new, apart, agreed = [], [], 0
    for name in dict.fromkeys((*bad.tests, *good.tests)):
        before, after = good.tests.get(name), bad.tests.get(name)
        fails_before, fails_after = before in FAILING, after in FAILING
        if fails_before and fails_after:
            apart.append(ApartTest(name, "both", f"{before} on the good build, {after} on the bad one"))
        elif fails_after and before == "passed":
            new.append(name)
        elif fails_after:
            apart.append(ApartTest(name, "one-build", f"{after} on the bad build, {before or 'not there'} on the good"))
        elif fails_before:
            apart.append(ApartTest(name, "fixed", f"{before} on the good build, {after or 'not there'} on the bad one"))
        else:
            agreed += 1
    return Difference(tuple(new), tuple(apart), agreed)


def without_flaky(found: Difference, good: SuiteRun, bad: SuiteRun) -> Difference:
    """Set the new failures apart that a second run, of these tests alone, does not confirm."""
    steady, apart = [], list(found.apart)
    for name in found.new:
        if not bad.failing(name):
            apart.append(
                ApartTest(name, "flaky", f"{bad.tests.get(name, 'not there')} in a second run on the bad build")
            )
        elif good.failing(name):
            apart.append(ApartTest(name, "flaky", f"{good.tests[name]} in a second run on the good build"))
        else:
            steady.append(name)
    return Difference(tuple(steady), tuple(apart), found.agreed)


def disagreeing(names: Iterable[str], last_good: SuiteRun, first_bad: SuiteRun) -> tuple[str, ...]:
    """Return the tests that an edge does not fit: they fail before it, or do not fail behind it."""
    return tuple(name for name in names if last_good.failing(name) or not first_bad.failing(name))


def counted(apart: Iterable[ApartTest]) -> Mapping[str, list[ApartTest]]:
    """Return the tests that do not count by their kinds, in the order of ``APART``."""
    tests = list(apart)
    return {kind: found for kind in APART if (found := [test for test in tests if test.kind == kind])}
