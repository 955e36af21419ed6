"""Which of two things that changed together an answer follows."""

from __future__ import annotations

import pytest

from torchbisect.bisect.search.evidence import Finding, Status
from torchbisect.bisect.sources.dependency_diff import Changed
from torchbisect.pipeline.stages.dependencies import followed

GOOD, BAD, NONE = (Finding(status, "import-failed" if status is Status.UNTESTABLE else None) for status in Status)
TRITON = Changed("triton", "3.4.0", "3.5.0")


@pytest.mark.parametrize(
    ("with_newer", "with_older", "words"),
    [
        (BAD, GOOD, "the answer follows triton and not torch"),
        (GOOD, BAD, "the answer follows torch and not triton"),
        (
            GOOD,
            NONE,
            "which of them did it is open: the older torch with triton 3.5.0 is good, "
            "the newer torch with triton 3.4.0 is untestable (import-failed)",
        ),
    ],
)
def test_a_regression(with_newer: Finding, with_older: Finding, words: str) -> None:
    assert followed(TRITON, Status.GOOD, Status.BAD, with_newer, with_older) == words


def test_a_fix_is_the_same_the_other_way_round() -> None:
    assert followed(TRITON, Status.BAD, Status.GOOD, GOOD, BAD) == "the answer follows triton and not torch"
    assert followed(TRITON, Status.BAD, Status.GOOD, BAD, GOOD) == "the answer follows torch and not triton"
