"""The sentences about boundaries."""

from __future__ import annotations

import pytest

from torchbisect.bisect import wording


@pytest.mark.parametrize(
    ("share", "said"), [(0.95, "95% sure"), (0.9519, "95.1% sure"), (0.9999, "99.9% sure"), (1.0, "99.9% sure")]
)
def test_a_confidence_is_rounded_down(share: float, said: str) -> None:
    found = wording.sentence(wording.FIX, "2.8.0", "2.9.0", exact=True, confidence=share)
    assert found == f"It was fixed in 2.9.0: last bad 2.8.0, first fixed 2.9.0 (the script is flaky: this is {said})."
