"""False-positive checks: differences that may be only rounding."""

from __future__ import annotations

import pytest

from torchbisect.core.repro import Repro, Settings
from torchbisect.core.verdict import MismatchKind
from torchbisect.probe.judge.classify import find_mismatch
from torchbisect.probe.judge.false_positive_checks import EMULATE_PRECISION_CASTS, may_be_rounding

LOW = "import torch\nx = torch.ones(3, dtype=torch.bfloat16)\n"


@pytest.mark.parametrize(
    ("source", "compiled", "settings", "doubtful"),
    [
        (LOW, "1.0078125", Settings(), True),
        (LOW, "1.0078125", Settings(backend="inductor"), True),
        (LOW, "1.0078125", Settings(backend="aot_eager"), False),
        (LOW, "1.0078125", Settings(knobs=((EMULATE_PRECISION_CASTS, True),)), False),
        (LOW, "2.0", Settings(), False),
        (LOW, "nan", Settings(), False),
        (LOW.replace("bfloat16", "float32"), "1.0078125", Settings(), False),
    ],
)
def test_only_a_small_difference_in_low_precision_may_be_rounding(
    shown, source: str, compiled: str, settings: Settings, doubtful: bool
) -> None:
    found = find_mismatch(
        shown.compiled(shown.finished, shown.differs(MismatchKind.VALUES, "call 0 output", "value", "1", compiled))
    )
    assert found is not None
    assert may_be_rounding(found, Repro(source), settings) == doubtful
