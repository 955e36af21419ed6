"""The effect of a patch of PyTorch on scripts, in words, as JSON and as an exit code."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from torchbisect.core.errors import Exit
from torchbisect.core.text_enum import TextEnum


class Effect(TextEnum):
    """The effect of a change on one script. ``FIXES`` and ``CAUSES`` speak of the change also where it was reverted."""

    FIXES = "fixes it"
    CAUSES = "causes it"
    NONE = "no effect"
    OTHER = "another mismatch"
    UNTESTABLE = "cannot be told"


@dataclass(frozen=True)
class ScriptEffect:
    """A script without and with a patch.

    Attributes:
        script: its name.
        without: what it does on the build as it is, in words.
        patched: what it does with the patch, or with the patch reverted.
    """

    script: str
    without: str
    patched: str
    effect: Effect


@dataclass(frozen=True)
class Verification:
    """The effect of a patch on a script, and on others.

    Attributes:
        patch: what the user typed.
        reverted: the patch was taken back from the build, not added to it.
        build: the build.
        files: the Python files that differ.
        scripts: the effect on the script, then on those of ``--also``.
        reason: one line that says why nothing could be shown, else ``None``.
        own: the number of scripts, at the beginning, that show the bug itself: the shrunk one and the original.
        left_out: the changed files that no installation has: tests and documents.
    """

    patch: str
    reverted: bool
    build: str
    files: tuple[str, ...]
    scripts: tuple[ScriptEffect, ...]
    reason: str | None = None
    own: int = 1
    left_out: tuple[str, ...] = ()

    @property
    def differing(self) -> tuple[ScriptEffect, ...]:
        """The scripts of the same bug on which the patch has another effect than on the first."""
        return tuple(one for one in self.scripts[1 : self.own] if one.effect is not self.scripts[0].effect)

    @property
    def broken(self) -> tuple[str, ...]:
        """The other scripts that work without the patch and go wrong with it."""
        worse = Effect.FIXES if self.reverted else Effect.CAUSES
        return tuple(one.script for one in self.scripts[self.own :] if one.effect is worse)

    @property
    def exit_code(self) -> Exit:
        """0 for an effect, 1 for none, 3 if it breaks others or the original differs, 6 if it cannot be told."""
        if self.reason is not None or not self.scripts or self.scripts[0].effect is Effect.UNTESTABLE:
            return Exit.UNTESTABLE
        if self.broken or self.differing:
            return Exit.PARTIAL
        return Exit.NO_MISMATCH if self.scripts[0].effect is Effect.NONE else Exit.FINISHED

    @property
    def sentence(self) -> str:
        """The result in one line."""
        done = f"{'reverting' if self.reverted else 'applying'} {self.patch} on torch {self.build}"
        if self.reason is not None:
            return f"{done} could not be shown: {self.reason}"
        first = self.scripts[0]
        words = {
            Effect.FIXES: "brings the mismatch back: the change fixes it" if self.reverted else "makes it pass",
            Effect.CAUSES: "makes it pass: the change causes it" if self.reverted else "makes it fail",
            Effect.NONE: "changes nothing for it",
            Effect.OTHER: f"gives another mismatch ({first.patched})",
            Effect.UNTESTABLE: f"does not tell: {first.patched}",
        }[first.effect]
        more = "".join(f"; {one.script}: {one.effect}" for one in self.differing)
        more += f"; it breaks {', '.join(self.broken)}" if self.broken else ""
        return f"{done} {words} ({first.script}){more}"

    def to_json(self) -> dict[str, Any]:
        """Return the form of ``--json``."""
        scripts = [{**asdict(one), "effect": one.effect.value} for one in self.scripts]
        return {**asdict(self), "scripts": scripts, "broken": list(self.broken), "summary": self.sentence}
