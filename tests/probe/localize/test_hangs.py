"""A hang is localized with its questions side by side: each that hangs takes the whole time limit."""

from __future__ import annotations

import time

import pytest

from torchbisect.containers.environment import Environment
from torchbisect.core.repro import Repro
from torchbisect.core.verdict import Answer, MismatchKind
from torchbisect.probe.journal import Journal
from torchbisect.probe.limits import Limits
from torchbisect.probe.localize.backends import localize, with_avoiding_settings
from torchbisect.probe.pool import Pool
from torchbisect.probe.probe import Probe
from torchbisect.probe.probe_options import ProbeOptions

HANGS = """
import time
import torch

def backend(graph, inputs):
    time.sleep(3600)

print(torch.compile(lambda x: x * 2, backend=backend)(torch.ones(2)))
"""
SECONDS = 15.0


@pytest.mark.torch
@pytest.mark.long
def test_the_questions_about_a_hang_wait_side_by_side(environment: Environment) -> None:
    limits = Limits(compiled_floor=SECONDS, compiled_cap=SECONDS)
    options = ProbeOptions(limits=limits, check_every=0)
    with Probe(environment, Journal(), options) as probe:
        repro = Repro(HANGS)
        mismatch = probe.mismatch(repro)
        assert mismatch is not None
        assert mismatch.kind is MismatchKind.HANG
        with Pool(probe, 2) as pool:
            for future in pool._starting:
                future.result()
            began = time.monotonic()
            found = localize(pool, repro, mismatch, expect=pool.expect)
            found = with_avoiding_settings(found, pool, repro, mismatch.signature, try_flags=False, expect=pool.expect)
            seconds = time.monotonic() - began
    hanging = [row.verdict.seconds for row in found.table if row.verdict.answer is Answer.SAME]
    assert found.backend is None
    assert len(hanging) == 2
    # One after the other they would take at least the sum.
    assert seconds < sum(row.verdict.seconds for row in found.table)
