"""A change of inductor that keeps memory, and a flag with which it does not, are found in real torch."""

from __future__ import annotations

import pytest
from nightly_index import Change, NightlyIndex
from running import Tool

pytestmark = pytest.mark.long

#: What is not used again is no longer freed, unless buffers are never used again.
KEPT = Change(
    "torch/_inductor/codegen/wrapper.py",
    "        if not self.is_reused:\n            line = self.wrapper.make_buffer_free(self.node)\n",
    "        if not self.is_reused and not config.allow_buffer_reuse:\n"
    "            line = self.wrapper.make_buffer_free(self.node)\n",
)
SCRIPT = """\
import torch

weights = [torch.ones(16 - step, 15 - step) for step in range(8)]


@torch.compile
def chain(x):
    for weight in weights:
        x = x @ weight
    return x


for _ in range(3):
    chain(torch.ones(1 << 20, 16))
"""


def test_the_flag_is_named(tool: Tool) -> None:
    index = NightlyIndex(count=2, changes={KEPT: (1, 2)}, roll=2, has_headers=True)
    builds = ("--torch", index.date(1).isoformat(), "--against", index.date(0).isoformat())
    words = ("--channel", "nightly", "--index-url", index.start(), *builds)
    try:
        done = tool.run(
            "minimize", *words, "--measure", "memory", "--worse-by", "1.5", "--budget", "5s", tool.write(SCRIPT)
        )
    finally:
        index.stop()
    assert done.returncode == 3, done.stdout  # shrinking was cut short
    measured = tool.report["measurement"]
    assert len(measured["kernels"]) == 2
    flags = {effect["flag"]: effect["ratio"] for effect in measured["flags"]}
    assert flags["torch._inductor.config.allow_buffer_reuse = False"] < 1.5, done.stderr
    assert "no longer worse with torch._inductor.config.allow_buffer_reuse = False" in done.stdout
