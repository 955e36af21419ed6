"""The result of ``verify`` in words and as an exit code."""

from __future__ import annotations

import pytest

from torchbisect.pipeline.verification import Effect, ScriptEffect, Verification


def told(*effects: Effect, own: int = 1, reverted: bool = False, reason: str | None = None) -> Verification:
    scripts = tuple(ScriptEffect(f"{number}.py", "x", "y", effect) for number, effect in enumerate(effects))
    return Verification("fix.diff", reverted, "2.8.0", ("torch/a.py",), scripts, reason, own=own)


@pytest.mark.parametrize(
    ("found", "code", "words"),
    [
        (told(Effect.FIXES), 0, "applying fix.diff on torch 2.8.0 makes it pass (0.py)"),
        (told(Effect.NONE), 1, "changes nothing for it"),
        (told(Effect.CAUSES, reverted=True), 0, "makes it pass: the change causes it"),
        (told(Effect.FIXES, Effect.CAUSES), 3, "it breaks 1.py"),
        (told(Effect.FIXES, Effect.CAUSES, reverted=True), 0, "brings the mismatch back"),
        (told(Effect.CAUSES, Effect.FIXES, reverted=True), 3, "it breaks 1.py"),
        (told(Effect.UNTESTABLE), 6, "does not tell"),
        (told(reason="it does not apply here"), 6, "could not be shown: it does not apply here"),
        # The second is the original of the same bug, and the third another bug.
        (told(Effect.FIXES, Effect.FIXES, own=2), 0, "makes it pass (0.py)"),
        (told(Effect.FIXES, Effect.NONE, own=2), 3, "makes it pass (0.py); 1.py: no effect"),
        (told(Effect.FIXES, Effect.OTHER, own=2), 3, "1.py: another mismatch"),
        (told(Effect.FIXES, Effect.FIXES, Effect.CAUSES, own=2), 3, "it breaks 2.py"),
    ],
)
def test_the_exit_code_and_the_sentence(found: Verification, code: int, words: str) -> None:
    assert found.exit_code == code, found.sentence
    assert words in found.sentence
    assert found.to_json()["summary"] == found.sentence
