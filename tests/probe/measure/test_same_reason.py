"""A shrunk script is worse for the original's reason: what is timed, how much it loses, and the counts that rose."""

from __future__ import annotations

import pytest

from torchbisect.probe.measure.comparison import BuildMeasurement, MeasuredAnswer
from torchbisect.probe.measure.measure import Measure
from torchbisect.probe.measure.same_reason import other_reason, signature_of

TIME = Measure("time")


Counts = dict[str, tuple[float, float]]


def worse(value: float = 1.3, of: float = 1.0, timed: str = "calls", counts: Counts | None = None) -> BuildMeasurement:
    return BuildMeasurement(
        MeasuredAnswer.WORSE, ratio=value / of, value=value, reference=of, timed=timed, counts=counts or {}
    )


KERNELS = {"kernel-count": (3.0, 7.0)}


@pytest.mark.parametrize(
    ("original", "smaller", "said"),
    [
        (worse(), worse(0.65, 0.5), None),
        (worse(), worse(timed="script"), "timed: script, not calls"),
        (worse(), worse(0.013, 0.01), "worse by 3 ms, not by 300 ms"),
        (worse(), worse(3.0, 1.0), None),
        (worse(counts=KERNELS), worse(counts={"kernel-count": (0.0, 1.0)}), None),
        (worse(counts=KERNELS), worse(), "no more kernel-count than on the reference"),
        (worse(counts={**KERNELS, "graph-breaks": (0.0, 1.0)}), worse(counts=KERNELS), None),
        (worse(counts={"kernel-count": (7.0, 3.0)}), worse(), None),
        (worse(), worse(counts=KERNELS), None),
    ],
)
def test_the_reason_of_a_time(original: BuildMeasurement, smaller: BuildMeasurement, said: str | None) -> None:
    assert other_reason(TIME, signature_of(TIME, original), signature_of(TIME, smaller)) == said


def test_a_count_may_be_of_anything() -> None:
    measure = Measure("kernel-count")
    original = signature_of(measure, worse(70, 30, "calls", {"kernel-count": (30.0, 70.0), "recompiles": (0.0, 1.0)}))
    smaller = signature_of(measure, worse(2, 1, "script", {"kernel-count": (1.0, 2.0)}))
    assert other_reason(measure, original, smaller) is None
