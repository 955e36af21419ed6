"""The dependency that an answer follows, if two changed together."""

from __future__ import annotations

import pytest

from torchbisect.bisect.search.evidence import BuildAnswer, BuildStatus
from torchbisect.bisect.sources.suspects import VersionChange
from torchbisect.pipeline.stages.dependencies import exchange_result

GOOD, BAD, NONE = (
    BuildAnswer(status, "import-failed" if status is BuildStatus.UNTESTABLE else None) for status in BuildStatus
)
TRITON = VersionChange("triton", "3.4.0", "3.5.0")


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
def test_the_dependency_that_a_regression_follows(with_newer: BuildAnswer, with_older: BuildAnswer, words: str) -> None:
    assert exchange_result(TRITON, BuildStatus.GOOD, BuildStatus.BAD, with_newer, with_older) == words


def test_the_dependency_that_a_fix_follows() -> None:
    ends = (BuildStatus.BAD, BuildStatus.GOOD)
    assert exchange_result(TRITON, *ends, GOOD, BAD) == "the answer follows triton and not torch"
    assert exchange_result(TRITON, *ends, BAD, GOOD) == "the answer follows torch and not triton"
