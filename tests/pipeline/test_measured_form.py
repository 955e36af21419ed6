"""A measured script is shrunk with a call of its benchmark() at the end."""

from __future__ import annotations

import pytest

from torchbisect.pipeline.stages.measured_form import MeasuredForm, ends_with_call, with_call, without_call
from torchbisect.probe.limits import Limits

SCRIPT = "import torch\n\n\ndef benchmark():\n    torch.ones(3)\n"


def test_the_call_is_added_once_and_removed_again() -> None:
    called = with_call(SCRIPT)
    assert called == f"{SCRIPT}\n\nbenchmark()\n"
    assert with_call(called) is None
    assert ends_with_call(called)
    assert without_call(called) == SCRIPT


@pytest.mark.parametrize(
    "source",
    ["import torch\n", "benchmark = 3\n", "class A:\n    def benchmark(self):\n        pass\n", "# benchmark()\n"],
)
def test_a_script_without_that_function_stays_as_it_is(source: str) -> None:
    assert with_call(source) is None
    assert not ends_with_call(source)


@pytest.mark.parametrize(
    ("timed", "candidate", "accepted"),
    [
        (True, "def benchmark():\n    pass\n\nbenchmark()\n", True),
        (True, "def benchmark():\n    pass\n", False),
        (True, "def f():\n    pass\n\nf()\n", False),
        (False, "import torch\ntorch.ones(3)\n", True),
    ],
)
def test_only_what_is_timed_has_to_stay(timed: bool, candidate: str, accepted: bool) -> None:
    form = MeasuredForm(Limits(), timed)
    assert form.accepts(f"{SCRIPT}\nbenchmark()\n")(candidate) is accepted
    assert form.accepts(SCRIPT)(candidate), "a script that was worse only without the call is shrunk without it"
