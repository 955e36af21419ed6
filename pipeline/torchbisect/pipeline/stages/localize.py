"""The localize stage: the part of the compiler that shows the mismatch, the cheapest settings, and the pass."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import asdict, dataclass, replace
from functools import partial

from torchbisect.core.decode import decode
from torchbisect.core.repro import Repro, Settings, fingerprint
from torchbisect.core.verdict import MismatchKind
from torchbisect.core.version import __version__
from torchbisect.pipeline.session import Session
from torchbisect.pipeline.stages.observe import Observed, count_runs
from torchbisect.probe.judge.classify import Mismatch
from torchbisect.probe.localize.backends import LADDER, Localization, localize, with_avoiding_settings
from torchbisect.probe.localize.compiler_bisector import PassFound, read_pass
from torchbisect.probe.oracle import Oracle, Question
from torchbisect.probe.pool import Pool

# The backends with parts that torch's own bisector can switch off.
_BACKENDS_WITH_PASSES = LADDER[2:]
#: One for each backend, and one for the fresh process: a run that hangs is mostly idle.
_HANGS_AT_ONCE = len(LADDER) + 1


@dataclass(frozen=True)
class Localized:
    """The observation with its runs counted, and the settings that are used from here on.

    Attributes:
        observed: the observation; its verdict is ``flaky`` if not every run shows the mismatch.
        settings: the cheapest settings on which every run shows it.
        localization: the part of the compiler; ``None`` for a flaky script.
    """

    observed: Observed
    settings: Settings
    localization: Localization | None = None

    @property
    def component(self) -> str | None:
        """The compiler stage at fault, if it was localized."""
        return self.localization.component if self.localization is not None else None


class _FreshProcess:
    """Asks a question in a fresh process, which waits until its settings are known, beside those that find them.

    As a context manager it waits no longer than that.
    """

    def __init__(self, question: Question) -> None:
        self._question = question
        self._settings: Future[Settings] = Future()

    def __enter__(self) -> _FreshProcess:
        return self

    def __exit__(self, *error: object) -> None:
        self._settings.cancel()

    def begin(self, settings: Settings) -> None:
        """Ask with these settings, unless it was asked with others before."""
        if not self._settings.done():
            self._settings.set_result(settings)

    def ask(self, helper: Oracle) -> tuple[Settings, bool]:
        """Return the settings, and True if the fresh process agrees."""
        settings = self._settings.result()
        return settings, helper.fresh_process_agrees(replace(self._question, settings=settings))


def _fresh_process_agrees(pool: Pool, question: Question) -> bool:
    """Return True if a fresh process agrees; the pool's first function may have asked it this question."""
    begun = pool.first.result()
    if begun is not None and begun[0] == question.settings:
        return bool(begun[1])
    return pool.alone(lambda oracle: oracle.fresh_process_agrees(question))


def localize_mismatch(
    session: Session, oracle: Oracle, repro: Repro, observed: Observed, *, is_shrunk_next: bool
) -> Localized:
    """Find the part of the compiler that shows a mismatch, and check that every run shows it.

    What avoids it is looked for too, unless the script ``is_shrunk_next``: ``find_avoiding_settings`` asks a small
    script the same sooner.
    """
    mismatch = observed.certain_mismatch
    if mismatch is None:
        return Localized(observed, Settings())
    if mismatch.kind is MismatchKind.HANG:
        return _localize_hang(session, oracle, repro, observed, mismatch, is_shrunk_next=is_shrunk_next)
    question = Question(repro, mismatch.signature)
    fresh, size = _FreshProcess(question), session.options.candidates
    with Pool(oracle, size, fresh.ask if size > 1 else lambda alone: None) as pool, fresh:
        found = localize(
            pool,
            repro,
            mismatch,
            session.display.status,
            on_last_backend=partial(fresh.begin, Settings(backend=LADDER[-1])),
        )
        fresh.begin(found.settings)
        if not is_shrunk_next:
            found = _with_avoiding_settings(session, pool, found, question, try_flags=oracle.runs_are_cheap)
        agrees, counted = partial(_fresh_process_agrees, pool), pool.times_shown
        seen = count_runs(session, oracle, repro, observed, found.settings, agrees=agrees, counted=counted)
    if seen.verdict == "flaky":
        # The cheapest settings may be to blame, or the warm processes, which are not asked from here on.
        seen = count_runs(session, oracle, repro, observed, Settings())
        if seen.verdict == "flaky":
            return Localized(seen, Settings())
        found = replace(found, settings=Settings())
    return _shown(session, Localized(seen, found.settings, found))


def _localize_hang(
    session: Session, oracle: Oracle, repro: Repro, observed: Observed, mismatch: Mismatch, *, is_shrunk_next: bool
) -> Localized:
    """Localize a hang with its questions side by side, as each that hangs takes the whole time limit.

    The fresh process shows the script's own settings, so it need not wait for the cheapest.
    """
    question = Question(repro, mismatch.signature)
    with Pool(oracle, _HANGS_AT_ONCE, lambda helper: helper.fresh_process_agrees(question)) as pool:
        found = localize(pool, repro, mismatch, session.display.status, expect=pool.expect)
        if not is_shrunk_next:
            found = _with_avoiding_settings(session, pool, found, question, try_flags=False)
        counted = count_runs(
            session,
            oracle,
            repro,
            observed,
            Settings(),
            agrees=lambda asked: pool.first.result(),
            counted=pool.times_shown,
        )
    if counted.verdict == "flaky":
        return Localized(counted, Settings())
    return _shown(session, Localized(counted, found.settings, found))


def find_avoiding_settings(session: Session, oracle: Oracle, found: Localization, question: Question) -> Localization:
    """Return a localization with the settings that avoid the mismatch of a shrunk script, and show the first.

    A flag that avoids a hang isn't worth the minutes that each of the others takes.
    """
    hangs = question.signature.kind is MismatchKind.HANG
    with Pool(oracle, _HANGS_AT_ONCE if hangs else session.options.candidates) as pool:
        flags = oracle.runs_are_cheap and not hangs
        found = _with_avoiding_settings(session, pool, found, question, try_flags=flags)
    if found.fixed_by:
        session.display.result(f"goes away with {found.fixed_by[0]}")
    return found


def _with_avoiding_settings(
    session: Session, pool: Pool, found: Localization, question: Question, *, try_flags: bool
) -> Localization:
    """Return a localization with what avoids the mismatch of the question's script."""
    repro, signature, show = question.repro, question.signature, session.display.status
    return with_avoiding_settings(found, pool, repro, signature, show, try_flags=try_flags, expect=pool.expect)


def _shown(session: Session, localized: Localized) -> Localized:
    found = localized.localization
    if found is not None:
        session.display.result(
            f"backend {found.backend or 'as given'}"
            + (f", component {found.component}" if found.component else "")
            + (f"; goes away with {found.fixed_by[0]}" if found.fixed_by else "")
        )
    return localized


@dataclass(frozen=True)
class _KeptPass:
    """The answer of torch's own bisector as the journal keeps it."""

    found: PassFound | None


def ask_for_pass(session: Session, oracle: Oracle, localization: Localization | None, repro: Repro) -> PassFound | None:
    """Ask torch's own bisector for the pass at fault in a script that fails only when compiled, unless it was asked.

    Return ``None`` if it names none, or one on another backend than the measured one: the script failed there for
    another reason.
    """
    if localization is None or localization.backend not in _BACKENDS_WITH_PASSES:
        return None
    environment = oracle.environment
    facts = asdict(environment.facts)
    key = fingerprint("pass", __version__, facts, environment.build.version, repro.source, repro.seed)
    known = session.journal.get(key, partial(decode, _KeptPass))
    if known is None:
        session.display.status("asking torch's own compiler_bisector")
        known = _KeptPass(read_pass(oracle.run_tool("find-pass", repro)))
        session.journal.put(key, asdict(known))
    found = known.found
    return found if found is not None and found.backend.startswith(localization.backend) else None


def find_compiler_pass(session: Session, oracle: Oracle, localization: Localization, repro: Repro) -> PassFound | None:
    """Return the pass at fault, as ``ask_for_pass`` does, and show it."""
    found = ask_for_pass(session, oracle, localization, repro)
    if found is not None:
        session.display.result(f"torch's compiler_bisector: {found.text}")
    return found
