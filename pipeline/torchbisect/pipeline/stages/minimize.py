"""The minimize stage: shrink the script while the oracle's answer stays, and make the result stand alone."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from torchbisect.bisect.search.evidence import BuildStatus
from torchbisect.core.repro import Repro, Settings
from torchbisect.core.verdict import Answer, MismatchKind, Verdict
from torchbisect.minimizer.interestingness import require_every_run
from torchbisect.minimizer.minimize import Budget, Patience, Progress, Reduction, minimize
from torchbisect.minimizer.standalone.assertions import standalone_candidates
from torchbisect.minimizer.syntax.backend import with_backend
from torchbisect.pipeline.session import Session
from torchbisect.pipeline.stages.bundle import with_local_modules, without_libraries
from torchbisect.pipeline.stages.confirm import CONFIRMING, confirm_standalone
from torchbisect.pipeline.stages.localize import ask_for_pass
from torchbisect.pipeline.stages.measured_form import MeasuredForm
from torchbisect.pipeline.typed_input import reads_input
from torchbisect.probe.judge.classify import Mismatch
from torchbisect.probe.judge.environment_faults import ended_badly
from torchbisect.probe.judge.matching import Strictness
from torchbisect.probe.limits import Limits
from torchbisect.probe.localize.backends import Localization
from torchbisect.probe.oracle import Oracle, Question
from torchbisect.probe.pool import Pool
from torchbisect.probe.script_files import named_files
from torchbisect.probe.standalone_run import PlainRun

# The scripts that are run under plain Python: those that the probe saw end badly, then those that it did not.
_MOST_LIKELY = 6
_MOST_UNLIKELY = 3
#: Further runs that tell a mismatch of every run from luck: one that half of the runs show passes one time in eight.
RECHECKS = 3
# A slow script, or one that a test judges, does not fail under plain Python, and can't be made to.
_NEVER_STANDALONE = (MismatchKind.SLOW, MismatchKind.COMMAND)


#: The part of a time budget that is kept for runs under plain Python, and the most seconds of it.
_CONFIRMING_SHARE = 0.2
_MOST_CONFIRMING = 60.0


@dataclass(frozen=True)
class _Clock:
    """The budget of the stage: shrinking gets what confirming leaves, and confirming goes on to the end of it."""

    budget: Budget
    began: float = field(default_factory=time.monotonic)

    @property
    def shrinking(self) -> Budget:
        """The rest of the budget that shrinking may use."""
        kept = min(_CONFIRMING_SHARE * (self.budget.seconds or 0.0), _MOST_CONFIRMING)
        return self.budget.left(0, time.monotonic() - self.began + kept)

    @property
    def is_over(self) -> bool:
        """True if the time of the stage is over."""
        return self.budget.seconds is not None and time.monotonic() - self.began >= self.budget.seconds


@dataclass(frozen=True)
class Subject:
    """The script that is shrunk, the mismatch that has to stay, and the cheapest settings that show it.

    With its ``localization`` the pass at fault is asked for while the result runs under plain Python.
    """

    repro: Repro
    mismatch: Mismatch
    settings: Settings
    localization: Localization | None = None


@dataclass(frozen=True)
class Witness:
    """Another build: its oracle, and the status of the original there, which the smaller script has to keep."""

    oracle: Oracle
    status: BuildStatus


@dataclass(frozen=True)
class ShrunkScript:
    """A shrunk script.

    Attributes:
        reduction: the reduction; the oracle goes on answering about its ``source``.
        settings: the settings that this source needs.
        text: the script for people: it stands alone if ``stands_alone`` is set, else it is the reduction's source.
        stands_alone: under plain Python it exits non-zero, and zero with ``torch.compile`` switched off.
        runs: the runs that showed this, each with True if ``torch.compile`` was switched off.
        home: what it needs beside its text: nothing, or the files of the original.
        mismatch: the mismatch that it shows itself, where it is known.
        log: the last part of the standard error of its compiled run.
    """

    reduction: Reduction
    settings: Settings
    text: str
    stands_alone: bool
    runs: tuple[tuple[PlainRun, bool], ...]
    home: Repro
    mismatch: Mismatch | None = None
    log: str = ""

    @property
    def repro(self) -> Repro:
        """The shrunk script as builds are asked about it."""
        return self.home.with_source(self.reduction.source)

    @property
    def repro_for_people(self) -> Repro:
        """The script of ``text``."""
        return self.home.with_source(self.text)

    def question(self, subject: Subject) -> Question:
        """Return the question if the shrunk script shows the subject's mismatch."""
        return Question(self.repro, subject.mismatch.signature, self.settings)


def shrink_trusted(
    session: Session, oracle: Oracle, subject: Subject, witnesses: Sequence[Witness] = ()
) -> ShrunkScript:
    """Shrink a script; shrink it once more if fresh processes disagree with the warm ones about the result."""
    clock = _Clock(session.options.budget or Budget())
    shrunk = _shrink(session, oracle, subject, witnesses, clock)
    if not shrunk.stands_alone and not oracle.fresh_process_agrees(shrunk.question(subject)):
        shrunk = _shrink(session, oracle, subject, witnesses, clock)
    session.display.result(
        f"{len(subject.repro.source.encode())} bytes to {len(shrunk.text.encode())}, "
        f"{len(shrunk.text.splitlines())} lines, after {shrunk.reduction.asked} questions"
    )
    if not shrunk.reduction.paid_off:
        session.display.result("shrinking ended as the last questions removed next to nothing; --budget 1h goes on")
    return shrunk


def unfinished_reason(session: Session, subject: Subject, shrunk: ShrunkScript) -> str | None:
    """Return the reason why the stage did not reach its goal, or ``None`` if it did."""
    reason = None
    if not shrunk.reduction.finished:
        reason = f"stopped at --budget {session.options.budget}; it may shrink further"
        session.display.result(reason)
    if session.options.measure is not None and shrunk.mismatch is None:
        reason = "the shrunk script is not clearly worse when it is measured once more"
        session.display.warn(reason)
    if not shrunk.stands_alone and subject.mismatch.kind not in _NEVER_STANDALONE:
        reason = "the shrunk script does not fail by itself under plain python"
    return reason


def _shrink(
    session: Session, oracle: Oracle, subject: Subject, witnesses: Sequence[Witness], clock: _Clock
) -> ShrunkScript:
    """Shrink the script while the mismatch stays and every witness keeps its verdict on the original.

    The smallest script so far is in the workspace at every moment.
    """
    original = Question(subject.repro, subject.mismatch.signature, subject.settings)
    # A script that also fails without torch.compile is no smaller form of one that does not.
    must_succeed = oracle.succeeds_in_eager(original.repro)
    limits = _limits_of_candidates(oracle, original.repro)
    subject = replace(subject, repro=with_local_modules(oracle, original).repro)
    source, settings = _on_cheapest_backend(oracle, subject)
    measured = MeasuredForm.of(limits, original) if session.options.measure is not None else None
    source = measured.form(oracle, replace(original, repro=subject.repro)) if measured else source
    repro = subject.repro.with_source(source)

    question = Question(repro, subject.mismatch.signature, settings, eager_must_succeed=must_succeed, limits=limits)
    reducer = _Reducer(session, oracle, question, tuple(witnesses), _script_saver(session, len(source)), measured)
    reduction = reducer.reduced(source, clock.shrinking)
    small = replace(question.with_source(reduction.source), limits=None)
    at_home = replace(small, repro=_home(oracle, small).with_source(reduction.source))
    # With --repeat every question is asked several times already.
    if oracle.repeat == 1 and reducer.times_shown(at_home, RECHECKS) < RECHECKS:
        session.display.warn("only some runs show the shrunk script's mismatch: shrinking again, with rechecks")
        reduction = reducer.reduced(source, clock.shrinking, recheck=True)
    else:
        left = clock.shrinking.left(reduction.asked, 0)
        reduction = without_libraries(oracle, small, reduction, reducer.reduced, left)
    if measured:
        reduction = measured.finished(oracle, question, reduction)
    return _make_standalone(session, oracle, subject, reduction, settings, clock)


@dataclass(frozen=True)
class _Reducer:
    """Reduces scripts while the answer to ``question`` stays; ``save`` receives each new smallest script."""

    session: Session
    oracle: Oracle
    question: Question
    witnesses: tuple[Witness, ...]
    save: Callable[[str], None]
    measured: MeasuredForm | None

    def reduced(self, text: str, budget: Budget, *, recheck: bool = False) -> Reduction:
        """Return the smallest script with the same answer; with ``recheck`` each reduction is checked several times."""
        question, measured, display = self.question, self.measured, self.session.display
        with Pool(self.oracle, self.session.options.candidates) as pool:

            def ask(candidate: str) -> Verdict:
                asked = question.with_source(candidate)
                verdict = pool.ask(asked)
                for witness in self.witnesses:
                    if not verdict.same:
                        break
                    verdict = _with_witness(witness, verdict, asked)
                display.detail(" ".join(filter(None, (str(verdict.answer), verdict.reason, verdict.detail))))
                return verdict

            def again(candidate: str) -> Verdict:
                return pool.alone(lambda oracle: oracle.ask_once(question.with_source(candidate)))

            return minimize(
                text,
                require_every_run(ask, again, RECHECKS) if recheck else ask,
                trace=lambda text: pool.alone(lambda oracle: oracle.trace(question.with_source(text).repro)),
                expect=lambda texts: pool.expect(map(question.with_source, texts)),
                budget=budget,
                patience=Patience() if self.session.options.budget is None else None,
                on_best=self.save,
                on_progress=_progress(self.session, budget),
                accepts=measured.accepts(text) if measured else lambda candidate: True,
            )

    def times_shown(self, question: Question, times: int) -> int:
        """Return how many of so many further runs show the mismatch, in both processes."""
        with Pool(self.oracle, self.session.options.candidates) as pool:
            return pool.times_shown(question, times)


def _limits_of_candidates(oracle: Oracle, repro: Repro) -> Limits:
    """Return limits for the smaller forms of a script, from the two runs that the journal has of it."""
    seen = oracle.observe(repro)
    return oracle.limits.for_smaller_forms(seen.eager.seconds, seen.compiled.seconds)


def _on_cheapest_backend(oracle: Oracle, subject: Subject) -> tuple[str, Settings]:
    """Return the script with the cheapest backend written into it, or unchanged if that loses the mismatch."""
    backend = subject.settings.backend
    if backend is None:
        return subject.repro.source, subject.settings
    source = with_backend(subject.repro.source, backend)
    if source is not None:
        inside = Settings(None, subject.settings.mode, subject.settings.dynamic, subject.settings.compiled_autograd)
        question = Question(subject.repro.with_source(source), subject.mismatch.signature, inside)
        if oracle.ask(question).same:
            return source, inside
    return subject.repro.source, subject.settings


def _with_witness(witness: Witness, verdict: Verdict, question: Question) -> Verdict:
    """Return the verdict if the witness answers as it did for the original, else ``other``."""
    there = witness.oracle.ask(replace(question, strictness=Strictness.TOLERANT))
    expected = Answer.SAME if witness.status is BuildStatus.BAD else Answer.NONE
    if there.answer is expected:
        return verdict
    return Verdict(Answer.OTHER, "another-history", f"{there.answer} where the original is {witness.status}")


def _script_saver(session: Session, longest: int) -> Callable[[str], None]:
    """Return a function that saves each new smallest script, unless it is longer than the first one."""
    numbers = itertools.count(1)

    def save(source: str) -> None:
        if len(source) > longest:
            return
        session.workspace.save_minimal(source)
        if session.options.save_trajectory:
            session.workspace.save_step(next(numbers), source)

    return save


def _progress(session: Session, budget: Budget) -> Callable[[Progress], None]:
    done, total = ("asked", budget.questions) if budget.questions else ("seconds", budget.seconds)

    def show(progress: Progress) -> None:
        text = f"best so far {progress.bytes} bytes, after {progress.asked} questions ({progress.stage})"
        most = None if total is None else math.ceil(total)
        session.display.status(text, int(getattr(progress, done)), most)

    return show


def _make_standalone(
    session: Session, oracle: Oracle, subject: Subject, reduction: Reduction, settings: Settings, clock: _Clock
) -> ShrunkScript:
    """Make the result fail under plain Python, and run it to see that it does; after the budget's end try once only."""
    measured = session.options.measure is not None
    session.display.status("measuring the shrunk script" if measured else CONFIRMING, 0)  # beyond the budget
    home = _home(oracle, Question(subject.repro.with_source(reduction.source), subject.mismatch.signature, settings))
    _note_files(session, home, reduction.source)
    # The shrunk script shows the mismatch at another place than the original.
    small = home.with_source(reduction.source)
    seen = oracle.mismatch(small, settings)
    if measured:
        session.workspace.save_minimal(reduction.source)
        return ShrunkScript(reduction, settings, reduction.source, False, (), home, seen)
    log = oracle.observe(small, settings).compiled.errors if seen is not None else ""
    texts = standalone_candidates(reduction.source, seen or subject.mismatch)
    for number, text in enumerate(_likely_first(oracle, texts, home, settings), 1):
        if number > 1 and clock.is_over:
            break
        session.display.status(f"{CONFIRMING}: form {number} of at most {len(texts)}")
        form = home.with_source(text)
        meanwhile = partial(_ask_torch_itself, session, oracle, subject.localization, form)
        runs = confirm_standalone(session, oracle, form, meanwhile if number == 1 else lambda: None)
        if runs is not None:
            session.workspace.save_minimal(text)
            return ShrunkScript(reduction, settings, text, True, runs, home, seen, log)
    session.workspace.save_minimal(reduction.source)
    return ShrunkScript(reduction, settings, reduction.source, False, (), home, seen, log)


def _ask_torch_itself(session: Session, oracle: Oracle, localization: Localization | None, repro: Repro) -> None:
    """Ask torch's own tools for the pass at fault and the versions, which later stages take from the answers."""
    ask_for_pass(session, oracle, localization, repro)
    session.display.status("collecting the versions")
    session.provider.collect_env(oracle)


def _home(oracle: Oracle, question: Question) -> Repro:
    """Return what a shrunk script needs beside its text, the least that keeps the answer.

    That is nothing, the files of the original with the script in its folder or in the folder of its modules, or
    everything, with the arguments.
    """
    whole = question.repro
    homes = [Repro("", seed=whole.seed, name="minimal.py")]
    files = whole.files
    if files is not None and files.digest:
        for folder in dict.fromkeys((files.script, files.search)):
            beside = replace(files, script=folder, search=folder, argv0="", module="")
            homes.append(replace(homes[0], directory=whole.directory, files=beside))
    for home in homes:
        if oracle.ask(replace(question, repro=home.with_source(whole.source))).same:
            return home
    # Without files there is no more to give; the next stages tell what is wrong with it.
    return whole if whole.arguments or files is not None else homes[0]


def _note_files(session: Session, home: Repro, source: str) -> None:
    if home.files is None:
        return
    names = named_files(source, home.files.folder)
    if home.files.typed_input and reads_input((source,)):
        session.notify("the shrunk script reads standard input: give it the same data, as in python minimal.py < data")
        if not names:
            return
    shown = ", ".join(names[:5]) or "files of its folder"
    session.notify(f"the shrunk script needs {shown}: run it with {'it' if len(names) == 1 else 'them'} in place")


def _likely_first(oracle: Oracle, texts: Sequence[str], home: Repro, settings: Settings) -> Iterator[str]:
    """Yield the scripts that fail in the probe first: a plain run costs as much as twenty of the probe's.

    They fail there with other random numbers than the original, as plain Python has its own.
    """
    if not oracle.compares_eager:
        yield from texts
        return
    likely, unlikely = 0, []
    for text in texts:
        seen = oracle.observe(replace(home.with_source(text), seed=home.seed + 1), settings)
        if not ended_badly(seen.compiled) or ended_badly(seen.eager):
            unlikely.append(text)
        elif likely < _MOST_LIKELY:
            likely += 1
            yield text
    yield from unlikely[:_MOST_UNLIKELY]
