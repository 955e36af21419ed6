"""Tighter limits for candidates: a form of a script that lost the end of a loop is given up soon."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from installed_bugs import BUGS

from torchbisect.core.repro import Repro
from torchbisect.core.verdict import Answer
from torchbisect.probe.limits import Limits
from torchbisect.probe.oracle import Question
from torchbisect.probe.probe import Probe

SECONDS = st.floats(0.0, 1000.0)


@given(SECONDS, SECONDS)
def test_limits_of_smaller_forms_are_tighter_and_leave_the_script_itself_room(eager: float, compiled: float) -> None:
    limits = Limits()
    tight = limits.for_smaller_forms(eager, compiled)
    assert min(2 * eager, limits.eager) <= tight.eager <= limits.eager
    assert min(2 * compiled, limits.compiled_floor) <= tight.compiled_floor <= limits.compiled_floor
    assert tight.for_smaller_forms(1000.0, 1000.0) == tight


@pytest.mark.long
@pytest.mark.torch
def test_an_endless_candidate_is_given_up_and_leaves_other_questions_their_time(probe: Probe) -> None:
    wrong, _, _ = BUGS["python semantics"]
    found = probe.mismatch(Repro(wrong))
    assert found is not None
    seen = probe.observe(Repro(wrong))
    limits = probe.limits.for_smaller_forms(seen.eager.seconds, seen.compiled.seconds)
    endless = Repro(f"items = [0]\nfor item in items:\n    items.append(item)\n{wrong}")
    began = time.process_time()
    verdict = probe.ask(Question(endless, found.signature, limits=limits))
    assert (verdict.answer, verdict.reason) in {(Answer.UNTESTABLE, "timed-out"), (Answer.UNTESTABLE, "out-of-memory")}
    assert time.process_time() - began < limits.eager
    slow = Repro(f"import time\ntime.sleep({limits.eager + 1})\n{wrong}")
    assert probe.ask(Question(slow, found.signature, limits=limits)).reason == "timed-out"
    assert probe.mismatch(slow) is not None
