"""When what was seen is looked at a second time."""

from __future__ import annotations

import pytest

from torchbisect.core.mismatch import MismatchKind
from torchbisect.core.repro import Repro, Settings
from torchbisect.probe.judge.classify import find_mismatch
from torchbisect.probe.judge.false_positive_checks import EMULATE, backend_of, may_be_rounding
from torchbisect.probe.judge.signature import Signature

LOW = "import torch\nx = torch.ones(3, dtype=torch.bfloat16)\n"


@pytest.mark.parametrize(
    ("source", "compiled", "settings", "doubtful"),
    [
        (LOW, "1.0078125", Settings(), True),
        (LOW, "1.0078125", Settings(backend="inductor"), True),
        (LOW, "1.0078125", Settings(backend="aot_eager"), False),
        (LOW, "1.0078125", Settings(knobs=((EMULATE, True),)), False),
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


@pytest.mark.parametrize(
    ("stage", "source", "settings", "backend"),
    [
        ("dynamo", "", Settings(), "eager"),
        ("aot", "", Settings(), "aot_eager"),
        ("inductor", "torch.compile(f, backend='eager')", Settings(), "inductor"),
        ("inductor", "", Settings(backend="aot_eager"), "aot_eager"),
        ("", "torch.compile(f, backend='eager')", Settings(), "eager"),
        ("", "torch.compile(f)", Settings(), "inductor"),
        ("", "a(backend='eager')\nb(backend = \"aot_eager\")", Settings(), "inductor"),
    ],
)
def test_the_health_of_the_backend_that_was_reached_decides(
    stage: str, source: str, settings: Settings, backend: str
) -> None:
    assert backend_of(Signature(MismatchKind.RAISES, stage=stage), source, settings) == backend
