"""The minimize stage: shrinks the script through the probe, and makes it stand alone."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from torchbisect.bisect.search.evidence import BuildStatus
from torchbisect.core.repro import Repro, Settings
from torchbisect.core.verdict import Answer, Verdict
from torchbisect.minimizer.minimize import Budget, Progress, Reduction, minimize
from torchbisect.minimizer.repeat_check import require_every_run
from torchbisect.minimizer.standalone.assertions import standalone_candidates
from torchbisect.minimizer.syntax.backend import with_backend
from torchbisect.pipeline.session import Session
from torchbisect.pipeline.stages.bundle import with_own_modules, without_libraries
from torchbisect.probe.judge.classify import Mismatch
from torchbisect.probe.judge.environment_faults import ended_badly
from torchbisect.probe.judge.matching import Strictness
from torchbisect.probe.oracle import Oracle
from torchbisect.probe.pool import Pool
from torchbisect.probe.question import Question
from torchbisect.probe.standalone_run import PlainRun, run_plain

# A result is run so often in a fresh process before it is called confirmed.
CONFIRMATIONS = 3
# So many scripts are run under plain Python although they did nothing there that ends badly in a fork.
_UNLIKELY = 6
# So many further runs tell luck from a mismatch that is always there: one shown half of the time passes one in eight.
SURE = 3


@dataclass(frozen=True)
class Subject:
    """What is shrunk.

    Attributes:
        repro: the script as given.
        mismatch: what it shows and must go on showing.
        settings: the cheapest settings that show it.
    """

    repro: Repro
    mismatch: Mismatch
    settings: Settings


@dataclass(frozen=True)
class Witness:
    """Another build whose verdict on the original the smaller script has to keep.

    Attributes:
        probe: asks that build.
        status: what the original is there, good or bad.
    """

    probe: Oracle
    status: BuildStatus


@dataclass(frozen=True)
class Shrunk:
    """A shrunk script.

    Attributes:
        reduction: how it came about; its ``source`` is what the probe goes on asking about.
        settings: what that source needs beside what it says itself.
        text: what is handed to people: stands alone if ``stands_alone``, else the reduction's source.
        stands_alone: under plain Python it exits non-zero, and zero with ``torch.compile`` made a no-op.
        runs: the runs that showed it, each with whether ``torch.compile`` was a no-op there.
    """

    reduction: Reduction
    settings: Settings
    text: str
    stands_alone: bool
    runs: tuple[tuple[PlainRun, bool], ...]

    def repro(self, original: Repro) -> Repro:
        """The shrunk script as builds are asked about it: alone, with nothing of the original's surroundings."""
        return Repro(source=self.reduction.source, seed=original.seed, name="minimal.py")


def shrink(session: Session, probe: Oracle, subject: Subject, witnesses: Sequence[Witness] = ()) -> Shrunk:
    """Shrink the script while the same mismatch stays, and every witness says what it said of the original.

    The best so far is in the workspace at every moment.
    """
    original = Question(subject.repro, subject.mismatch.signature, subject.settings)
    subject = replace(subject, repro=with_own_modules(probe, original).repro)
    source, settings = _on_cheapest_backend(probe, subject)
    repro = subject.repro.with_source(source)

    # What fails without torch.compile too is no smaller form of a script that doesn't.
    question = Question(
        repro, subject.mismatch.signature, settings, eager_must_succeed=probe.succeeds_in_eager(repro, settings)
    )
    reducing = _Reducing(session, probe, question, tuple(witnesses), _keeper(session, len(source)))
    budget = session.options.budget or Budget()
    reduction = reducing.reduced(source, budget)
    small = question.with_source(reduction.source)
    # With --repeat every question is asked several times anyway.
    if probe.repeat == 1 and probe.reproduction_rate(small, SURE) < 1.0:
        session.display.warn("the shrunk script shows it only sometimes: shrinking again, each win asked about again")
        reduction = reducing.reduced(source, budget, sure=True)
    else:
        reduction = without_libraries(probe, small, reduction, reducing.reduced, budget)
    return _alone(session, probe, subject, reduction, settings)


@dataclass(frozen=True)
class _Reducing:
    """How a script is reduced.

    Attributes:
        question: about the script; a candidate is asked the same.
        witnesses: have to say of a candidate what they say of the script.
        keep: is given each new best.
    """

    session: Session
    probe: Oracle
    question: Question
    witnesses: tuple[Witness, ...]
    keep: Callable[[str], None]

    def reduced(self, text: str, budget: Budget, *, sure: bool = False) -> Reduction:
        """The least that shows what a text shows; ``sure`` to ask about each win several times."""
        question, display = replace(self.question, reuse_kernels=True), self.session.display
        with Pool(self.probe, self.session.options.candidates) as pool:

            def ask(candidate: str) -> Verdict:
                asked = question.with_source(candidate)
                verdict = pool.ask(asked)
                for witness in self.witnesses:
                    if not verdict.same:
                        break
                    verdict = _as_before(witness, verdict, asked)
                display.detail(" ".join(filter(None, (str(verdict.answer), verdict.reason, verdict.detail))))
                return verdict

            def again(candidate: str) -> Verdict:
                return pool.alone(lambda oracle: oracle.ask_once(question.with_source(candidate)))

            return minimize(
                text,
                require_every_run(ask, again, SURE) if sure else ask,
                trace=lambda text: pool.alone(lambda oracle: oracle.trace(question.with_source(text).repro)),
                expect=lambda texts: pool.expect(map(question.with_source, texts)),
                budget=budget,
                on_best=self.keep,
                on_progress=_progress(self.session),
            )


def _on_cheapest_backend(probe: Oracle, subject: Subject) -> tuple[str, Settings]:
    """The script with the cheapest backend written into it, or as it is with that backend set from outside."""
    backend = subject.settings.backend
    if backend is None:
        return subject.repro.source, subject.settings
    source = with_backend(subject.repro.source, backend)
    if source is not None:
        inside = Settings(None, subject.settings.mode, subject.settings.dynamic, subject.settings.compiled_autograd)
        verdict = probe.ask(Question(subject.repro.with_source(source), subject.mismatch.signature, inside))
        if verdict.same:
            return source, inside
    return subject.repro.source, subject.settings


def _as_before(witness: Witness, verdict: Verdict, question: Question) -> Verdict:
    there = witness.probe.ask(replace(question, strictness=Strictness.TOLERANT))
    expected = Answer.SAME if witness.status is BuildStatus.BAD else Answer.NONE
    if there.answer is expected:
        return verdict
    return Verdict(Answer.OTHER, "another-history", f"{there.answer} where the original is {witness.status}")


def _keeper(session: Session, most: int) -> Callable[[str], None]:
    """Keeps the best so far, and every one before it if that is wanted; nothing longer than what it began with."""
    numbers = itertools.count(1)

    def keep(source: str) -> None:
        if len(source) > most:
            return
        session.workspace.save_minimal(source)
        if session.options.save_trajectory:
            session.workspace.save_step(next(numbers), source)

    return keep


def _progress(session: Session) -> Callable[[Progress], None]:
    def say(progress: Progress) -> None:
        session.display.status(f"{progress.bytes} bytes after {progress.asked} questions ({progress.stage})")

    return say


def _alone(session: Session, probe: Oracle, subject: Subject, reduction: Reduction, settings: Settings) -> Shrunk:
    """Make the result fail by itself, and see it do so."""
    session.display.status("confirming under plain python")
    # Where it is seen in the shrunk script, which is not where it was seen in the original.
    seen = probe.mismatch(Repro(reduction.source, seed=subject.repro.seed, name="minimal.py"), settings)
    texts = standalone_candidates(reduction.source, seen or subject.mismatch)
    for text in _likely_first(probe, texts, subject.repro.seed, settings):
        runs = confirm(probe, text)
        if runs is not None:
            session.workspace.save_minimal(text)
            return Shrunk(reduction, settings, text, True, runs)
    session.workspace.save_minimal(reduction.source)
    return Shrunk(reduction, settings, reduction.source, False, ())


def _likely_first(probe: Oracle, texts: Sequence[str], seed: int, settings: Settings) -> Iterator[str]:
    """First what fails when compiled in a fork: a start of Python and torch costs as much as twenty of those."""
    if not probe.compares_eager:
        yield from texts
        return
    unlikely = []
    for text in texts:
        seen = probe.observe(Repro(text, seed=seed, name="minimal.py"), settings)
        if ended_badly(seen.compiled) and not ended_badly(seen.eager):
            yield text
        else:
            unlikely.append(text)
    yield from unlikely[:_UNLIKELY]


def confirm(probe: Oracle, text: str) -> tuple[tuple[PlainRun, bool], ...] | None:
    """Run a script under plain Python; ``None`` unless it fails each time and passes without ``torch.compile``."""
    eager = run_plain(probe.environment, text, timeout=probe.limits.longest, compiled=False)
    if eager.status != 0:
        return None
    runs = [(eager, True)]
    for _ in range(CONFIRMATIONS):
        run = run_plain(probe.environment, text, timeout=probe.limits.longest)
        if run.status == 0:
            return None
        runs.append((run, False))
    return tuple(runs)
