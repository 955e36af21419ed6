"""Whether something else than torch changed between two builds: triton's pin, CUDA's libraries.

A nightly pins its triton to a commit, under a name that has changed: ``pytorch-triton==2.1.0+e6216047b8`` until the
end of 2025, ``triton==3.6.0+git9844da95`` since. Both are installed as ``triton`` and count as one here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from torchbisect.containers.environment import Facts

_SAME = {"pytorch-triton": "triton", "pytorch-triton-rocm": "triton-rocm", "pytorch-triton-xpu": "triton-xpu"}


@dataclass(frozen=True)
class Changed:
    """Something that a build needs in another version than the build before it; ``None`` where it isn't needed."""

    name: str
    before: str | None
    after: str | None

    def __str__(self) -> str:
        if self.before is None:
            return f"{self.name} came in ({self.after})"
        if self.after is None:
            return f"{self.name} is no longer needed (was {self.before})"
        return f"{self.name} went from {self.before} to {self.after}"


def changed_pins(before: Iterable[str], after: Iterable[str]) -> tuple[Changed, ...]:
    """What is pinned to another version, by name.

    Args:
        before: the lines ``Requires-Dist`` of the older build's metadata.
        after: those of the newer one's.

    Only exact pins count: what has a range is the same for both builds, whatever it is.
    """
    older, newer = _pins(before), _pins(after)
    names = sorted(older.keys() | newer.keys())
    return tuple(
        Changed(name, older.get(name), newer.get(name)) for name in names if older.get(name) != newer.get(name)
    )


def changed_facts(before: Facts, after: Facts) -> tuple[Changed, ...]:
    """What was seen to differ in two environments besides torch itself: Python, CUDA, triton."""
    pairs = [
        ("Python", before.python, after.python),
        ("CUDA", before.cuda, after.cuda),
        ("triton", before.triton, after.triton),
    ]
    return tuple(Changed(name, old, new) for name, old, new in pairs if old != new)


def _pins(lines: Iterable[str]) -> dict[str, str]:
    found = {}
    for line in lines:
        try:
            requirement = Requirement(line)
        except InvalidRequirement:
            continue
        exact = [spec.version for spec in requirement.specifier if spec.operator in ("==", "===")]
        if exact and not (requirement.marker and "extra" in str(requirement.marker)):
            name = canonicalize_name(requirement.name)
            found[_SAME.get(name, str(name))] = exact[0]
    return found
