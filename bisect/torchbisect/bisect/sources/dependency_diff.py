"""Dependencies that changed between two builds besides torch itself: Python, CUDA, triton."""

from __future__ import annotations

from dataclasses import dataclass

from torchbisect.containers.environment import Facts


@dataclass(frozen=True)
class VersionChange:
    """A dependency whose version differs between two environments; ``None`` where an environment lacks it."""

    name: str
    before: str | None
    after: str | None

    def __str__(self) -> str:
        if self.before is None:
            return f"{self.name} was added ({self.after})"
        if self.after is None:
            return f"{self.name} is no longer needed (was {self.before})"
        return f"{self.name} went from {self.before} to {self.after}"


def changed_versions(before: Facts, after: Facts) -> tuple[VersionChange, ...]:
    """Return the dependencies with different versions in two environments."""
    pairs = [
        ("Python", before.python, after.python),
        ("CUDA", before.cuda, after.cuda),
        ("triton", before.triton, after.triton),
    ]
    return tuple(VersionChange(name, old, new) for name, old, new in pairs if old != new)
