"""The dependencies that differ between two environments."""

from __future__ import annotations

from torchbisect.bisect.sources.dependency_diff import changed_versions
from torchbisect.containers.environment import Facts


def test_versions_that_differ_besides_torch() -> None:
    old, new = Facts("2.8.0", "a", "3.11.7", "x", "12.8", "3.4.0"), Facts("2.9.0", "b", "3.11.7", "x", "12.8", "3.5.0")
    assert [str(change) for change in changed_versions(old, new)] == ["triton went from 3.4.0 to 3.5.0"]
