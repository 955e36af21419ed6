"""The runs under plain Python that ``torchbisect minimize`` makes, with the installed torch."""

from __future__ import annotations

import pytest
from installed_bugs import BUGS
from running import Tool

pytestmark = [pytest.mark.torch, pytest.mark.slow]


def test_a_result_with_random_weights_is_not_compared_with_a_number(tool: Tool) -> None:
    """Plain Python draws other weights, so that such a form can't hold there: one run each way is enough."""
    wrong, _, _ = BUGS["hook ignored"]
    done = tool.run("minimize", "--profile", tool.write(wrong))
    assert done.returncode == 0, done.stderr
    (total,) = [line for line in done.stderr.splitlines() if line.startswith("Minimize ")]
    assert " 2 in " in total
    assert tool.report["minimal"]["stands_alone"]
