"""Find the part of the compiler that shows a mismatch, the cheapest settings that do, and settings that avoid it.

The script and the torch stay, the settings vary. The order is that of PyTorch's page on reporting issues and of its
triage rubric: first the ladder of backends and compiled autograd, which name the part; then dynamic shapes and the
compiler flags of the part that was named. These need not be tried on the script that the part was found with: a smaller
form of it gives the same answers sooner.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from torchbisect.core.repro import Repro, Settings
from torchbisect.core.verdict import Answer, Verdict
from torchbisect.probe.judge.classify import Mismatch
from torchbisect.probe.judge.signature import Signature
from torchbisect.probe.localize.compiler_flags import Flag, flag_text, flags_for
from torchbisect.probe.oracle import Question

LADDER = ("eager", "aot_eager", "aot_eager_decomp_partition", "inductor")
"""The backends, from the least work of the compiler to all of it."""

_COMPONENTS = {
    "eager": "dynamo",
    "aot_eager": "pt2-dispatcher",
    "aot_eager_decomp_partition": "decompositions",
    "inductor": "inductor",
}
_EXPORTS = re.compile(r"\btorch\.export\b|\bfrom torch import .*\bexport\b")
_AHEAD = re.compile(r"\baoti?_compile(?:_and_package)?\b")
_MOST_FLAG_QUESTIONS = 24
_FLAG_SECONDS = 60.0


@dataclass(frozen=True)
class SettingsAnswer:
    """The answer to one question; ``text`` has the settings other than the backend, as a person types them."""

    settings: Settings
    text: str
    verdict: Verdict

    @property
    def backend(self) -> str | None:
        """The backend, or ``None`` for the script's own."""
        return self.settings.backend


@dataclass(frozen=True)
class Localization:
    """The part of the compiler that shows a mismatch.

    Attributes:
        backend: the first backend of the ladder that shows it; ``None`` if only the script's own settings do.
        component: the part, as in PyTorch's label (``dynamo``, ``pt2-dispatcher``, ``decompositions``,
            ``inductor``, ``compiled autograd``); ``None`` if unknown.
        settings: the cheapest settings that still show it.
        fixed_by: settings that avoid it, as a person types them.
        table: every question, in the order asked.
    """

    backend: str | None
    component: str | None
    settings: Settings
    fixed_by: tuple[str, ...] = ()
    table: tuple[SettingsAnswer, ...] = ()


class Answering(Protocol):
    """Anything that answers questions: an oracle, or a pool of them."""

    def ask(self, question: Question) -> Verdict:
        """Answer a question."""


def localize(
    probe: Answering,
    repro: Repro,
    mismatch: Mismatch,
    on_progress: Callable[[str], None] = lambda text: None,
    *,
    expect: Callable[[Iterable[Question]], None] = lambda questions: None,
    on_last_backend: Callable[[], None] = lambda: None,
) -> Localization:
    """Find the part of the compiler that shows a mismatch of a script with its own settings.

    Args:
        on_progress: receives one line before each question.
        expect: receives the questions that likely follow, which may be asked side by side.
        on_last_backend: is called before the last backend is tried, which is most likely the one then.
    """
    return _Localizer(probe, repro, mismatch.signature, on_progress, expect).find_part(on_last_backend)


def with_avoiding_settings(
    found: Localization,
    probe: Answering,
    repro: Repro,
    signature: Signature,
    on_progress: Callable[[str], None] = lambda text: None,
    *,
    try_flags: bool = True,
    expect: Callable[[Iterable[Question]], None] = lambda questions: None,
) -> Localization:
    """Return a localization with the settings that avoid the mismatch, and the questions that showed it.

    Args:
        repro: the script that they are tried on, which shows the mismatch with ``found.settings``: the one that
            ``found`` is about, or a smaller form.
        try_flags: look for compiler flags too.
        on_progress, expect: as in ``localize``.
    """
    return _Localizer(probe, repro, signature, on_progress, expect, found.table).find_avoiding(found, try_flags)


class _Localizer:
    """Asks the questions of a localization, one after the other."""

    def __init__(
        self,
        probe: Answering,
        repro: Repro,
        signature: Signature,
        on_progress: Callable[[str], None],
        expect: Callable[[Iterable[Question]], None],
        table: Iterable[SettingsAnswer] = (),
    ) -> None:
        self._probe = probe
        self._repro = repro
        self._signature = signature
        self._on_progress = on_progress
        self._expect = expect
        self._table = list(table)

    def find_part(self, on_last_backend: Callable[[], None]) -> Localization:
        settings = self._cheapest_settings(on_last_backend)
        backend = settings.backend
        component = _COMPONENTS.get(backend or "")
        fixed_by: tuple[str, ...] = ()
        if self._only_exports():
            exporting = backend == "eager" or not self._table
            component = "inductor" if backend == "inductor" else "export" if exporting else None
        elif self._uses_compiled_autograd() and self._avoided_by(replace(settings, compiled_autograd=False)):
            component, fixed_by = "compiled autograd", ("compiled_autograd=False",)
        return Localization(backend, component, settings, fixed_by, tuple(self._table))

    def find_avoiding(self, found: Localization, try_flags: bool) -> Localization:
        settings, fixed_by = found.settings, list(found.fixed_by)
        if self._only_exports():
            return found
        self._expect(self._question(replace(settings, dynamic=dynamic)) for dynamic in (False, True))
        if self._avoided_by(replace(settings, dynamic=False)):
            fixed_by.append("dynamic=False")
        elif self._avoided_by(replace(settings, dynamic=True)):
            fixed_by.append("dynamic=True")
        if "mode" in self._repro.source and found.backend in (None, "inductor"):
            self._ask(replace(settings, mode="default"))
        if try_flags:
            flags = flags_for(found.backend or "inductor")
            fixed_by += [flag_text(flag) for flag in self._avoiding_flags(settings, flags)]
        return replace(found, fixed_by=tuple(fixed_by), table=tuple(self._table))

    def _only_exports(self) -> bool:
        """Return True if the script exports a module, and calls no compiler but AOTInductor."""
        source = self._repro.source
        return bool(_EXPORTS.search(source)) and "compile" not in _AHEAD.sub("", source)

    def _cheapest_settings(self, on_last_backend: Callable[[], None]) -> Settings:
        """Return the first rung of the ladder that shows the mismatch; the script's own settings if none does.

        A script that only exports has two rungs, exporting and what AOTInductor adds to it, or else none: options of
        ``torch.compile`` change neither.
        """
        ladder: Sequence[str] = LADDER
        if self._only_exports():
            ladder = () if _AHEAD.search(self._repro.source) is None else ("eager", "inductor")
        self._expect(self._question(Settings(backend=backend)) for backend in ladder)
        for backend in ladder:
            if backend == LADDER[-1]:
                on_last_backend()
            if self._ask(Settings(backend=backend)).same:
                return Settings(backend=backend)
        return Settings()

    def _uses_compiled_autograd(self) -> bool:
        """Return True if the script or the mismatch mentions compiled autograd, which is off by default."""
        signature = self._signature
        texts = (self._repro.source, signature.message, *signature.frames_torch, *signature.causes)
        return any("compiled_autograd" in text or "compiled autograd" in text for text in texts)

    def _avoided_by(self, settings: Settings) -> bool:
        return self._ask(settings).answer is Answer.NONE

    def _ask(self, settings: Settings) -> Verdict:
        text = _settings_text(settings)
        self._on_progress(" ".join(part for part in (f"backend {settings.backend or 'of the script'}", text) if part))
        verdict = self._probe.ask(self._question(settings))
        self._table.append(SettingsAnswer(settings, text, verdict))
        return verdict

    def _question(self, settings: Settings) -> Question:
        return Question(self._repro, self._signature, settings)

    def _avoiding_flags(self, settings: Settings, flags: Sequence[Flag]) -> list[Flag]:
        """Return the single flags that avoid the mismatch; halves of them are tried only if all of them together help.

        Flags that help only together are not found. The search stops once the answers took a minute; only
        their own time counts, so that a continued run asks the same questions.
        """
        asked, seconds = 0, 0.0
        found: list[Flag] = []
        pending: list[Sequence[Flag]] = [tuple(flags)]
        while pending and asked < _MOST_FLAG_QUESTIONS and seconds < _FLAG_SECONDS:
            group = pending.pop(0)
            self._expect(self._question(replace(settings, knobs=tuple(other))) for other in pending)
            verdict = self._ask_flags(settings, group)
            asked, seconds = asked + 1, seconds + verdict.seconds
            if verdict.same:
                continue
            if len(group) > 1:
                middle = len(group) // 2
                pending += [group[:middle], group[middle:]]
            elif verdict.answer is Answer.NONE:
                found += group
        return found

    def _ask_flags(self, settings: Settings, group: Sequence[Flag]) -> Verdict:
        text = flag_text(group[0]) if len(group) == 1 else f"{len(group)} settings at once"
        self._on_progress(text)
        chosen = replace(settings, knobs=tuple(group))
        verdict = self._probe.ask(self._question(chosen))
        if len(group) == 1:
            self._table.append(SettingsAnswer(chosen, text, verdict))
        return verdict


def _settings_text(settings: Settings) -> str:
    parts = []
    if settings.mode is not None:
        parts.append(f"mode={settings.mode!r}")
    if settings.dynamic is not None:
        parts.append(f"dynamic={settings.dynamic}")
    if settings.compiled_autograd is not None:
        parts.append(f"compiled_autograd={settings.compiled_autograd}")
    return ", ".join(parts)
