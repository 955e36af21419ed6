"""Which part of the compiler shows a mismatch, on which settings it is cheapest to see, and what makes it go away.

Holds the script and the torch, varies the settings. The order is PyTorch's own (its page on reporting issues, and the
rubric by which its people triage): the ladder of backends first, because it names the part; then compiled autograd and
dynamic shapes; then the knobs of the part that was named.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from torchbisect.core.repro import Repro, Settings
from torchbisect.core.verdict import Answer, Verdict
from torchbisect.probe.judge.classify import Mismatch
from torchbisect.probe.localize.compiler_flags import Knob, knobs_for, words
from torchbisect.probe.oracle import Oracle
from torchbisect.probe.question import Question

LADDER = ("eager", "aot_eager", "aot_eager_decomp_partition", "inductor")
"""Backends from the least that is done to a script to all of it."""

_COMPONENTS = {
    "eager": "dynamo",
    "aot_eager": "pt2-dispatcher",
    "aot_eager_decomp_partition": "decompositions",
    "inductor": "inductor",
}
_MOST_KNOB_QUESTIONS = 24
_KNOB_SECONDS = 60.0


@dataclass(frozen=True)
class Row:
    """One line of the table: what was set, and whether the mismatch is still there.

    Attributes:
        settings: what was set.
        words: beside the backend, as a person types it; empty for nothing else.
        verdict: the answer.
    """

    settings: Settings
    words: str
    verdict: Verdict

    @property
    def backend(self) -> str | None:
        """The backend, or ``None`` for the script's own."""
        return self.settings.backend


@dataclass(frozen=True)
class Localization:
    """Which part of the compiler shows a mismatch.

    Attributes:
        backend: the first backend of the ladder that shows it; ``None`` if only the script's own settings do.
        component: the part, by the word of PyTorch's label (``dynamo``, ``pt2-dispatcher``, ``decompositions``,
            ``inductor``, ``compiled autograd``); ``None`` if nothing can be said.
        settings: the cheapest settings that still show it.
        fixed_by: settings that make it go away, as a person types them.
        table: every question, in the order asked.
        dynamic_shapes: it is there only when shapes are dynamic.
    """

    backend: str | None
    component: str | None
    settings: Settings
    fixed_by: tuple[str, ...] = ()
    table: tuple[Row, ...] = ()
    dynamic_shapes: bool = False

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of PyTorch's tracker that this points to."""
        named = [f"module: {self.component}"] if self.component else []
        return tuple(named + (["module: dynamic shapes"] if self.dynamic_shapes else []))


def localize(
    probe: Oracle,
    repro: Repro,
    mismatch: Mismatch,
    on_progress: Callable[[str], None] = lambda text: None,
    *,
    knobs: bool = True,
) -> Localization:
    """Find the part of the compiler that shows a mismatch.

    Args:
        probe: answers.
        repro: a script that shows it with its own settings.
        mismatch: what it shows.
        on_progress: hears one line before each question.
        knobs: whether settings that make it go away are looked for.
    """
    return _Search(probe, repro, mismatch, on_progress).run(knobs)


class _Search:
    def __init__(self, probe: Oracle, repro: Repro, mismatch: Mismatch, on_progress: Callable[[str], None]) -> None:
        self._probe = probe
        self._repro = repro
        self._mismatch = mismatch
        self._on_progress = on_progress
        self._table: list[Row] = []

    def run(self, knobs: bool) -> Localization:
        backend = self._first_backend()
        settings = Settings(backend=backend)
        component = _COMPONENTS.get(backend or "")
        fixed_by: list[str] = []
        if self._uses_compiled_autograd() and self._goes_away(replace(settings, compiled_autograd=False)):
            component = "compiled autograd"
            fixed_by.append("compiled_autograd=False")
        static = self._ask(replace(settings, dynamic=False))
        dynamic_shapes = static.answer is Answer.NONE
        if dynamic_shapes:
            fixed_by.append("dynamic=False")
        elif self._goes_away(replace(settings, dynamic=True)):
            fixed_by.append("dynamic=True")
        if "mode" in self._repro.source and backend in (None, "inductor"):
            self._ask(replace(settings, mode="default"))
        if knobs:
            fixed_by += [words(knob) for knob in self._fixing(settings, knobs_for(backend or "inductor"))]
        return Localization(backend, component, settings, tuple(fixed_by), tuple(self._table), dynamic_shapes)

    def _first_backend(self) -> str | None:
        for backend in LADDER:
            if self._ask(Settings(backend=backend)).same:
                return backend
        return None

    def _uses_compiled_autograd(self) -> bool:
        """Asked for only where there is a sign of it: it is off unless a script turns it on."""
        signature = self._mismatch.signature
        texts = (self._repro.source, signature.message, *signature.frames_torch, *signature.causes)
        return any("compiled_autograd" in text or "compiled autograd" in text for text in texts)

    def _goes_away(self, settings: Settings) -> bool:
        return self._ask(settings).answer is Answer.NONE

    def _ask(self, settings: Settings) -> Verdict:
        text = _in_words(settings)
        self._on_progress(" ".join(part for part in (f"backend {settings.backend or 'of the script'}", text) if part))
        verdict = self._probe.ask(Question(self._repro, self._mismatch.signature, settings))
        self._table.append(Row(settings, text, verdict))
        return verdict

    def _fixing(self, settings: Settings, knobs: Sequence[Knob]) -> list[Knob]:
        """The single knobs that make it go away.

        All are set at once; only if that helps are halves of them tried, so that the usual answer, none, costs one
        question. Knobs that help only together are not looked for, and none any more once the answers took a minute:
        the time that counts is the answers' own, so that a run that goes on asks what the first one would have.
        """
        asked, seconds = 0, 0.0
        found: list[Knob] = []
        pending: list[Sequence[Knob]] = [tuple(knobs)]
        while pending and asked < _MOST_KNOB_QUESTIONS and seconds < _KNOB_SECONDS:
            group = pending.pop(0)
            verdict = self._ask_knobs(settings, group)
            asked, seconds = asked + 1, seconds + verdict.seconds
            if verdict.same:
                continue
            if len(group) > 1:
                middle = len(group) // 2
                pending += [group[:middle], group[middle:]]
            elif verdict.answer is Answer.NONE:
                found += group
        return found

    def _ask_knobs(self, settings: Settings, group: Sequence[Knob]) -> Verdict:
        text = words(group[0]) if len(group) == 1 else f"{len(group)} settings at once"
        self._on_progress(text)
        chosen = replace(settings, knobs=tuple(group))
        verdict = self._probe.ask(Question(self._repro, self._mismatch.signature, chosen))
        if len(group) == 1:
            self._table.append(Row(chosen, text, verdict))
        return verdict


def _in_words(settings: Settings) -> str:
    parts = []
    if settings.mode is not None:
        parts.append(f"mode={settings.mode!r}")
    if settings.dynamic is not None:
        parts.append(f"dynamic={settings.dynamic}")
    if settings.compiled_autograd is not None:
        parts.append(f"compiled_autograd={settings.compiled_autograd}")
    return ", ".join(parts)
