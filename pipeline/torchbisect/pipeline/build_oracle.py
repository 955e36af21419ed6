"""Ask a build by its name: install it, run a script there once or by its signature, and keep the answers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any

from torchbisect.bisect.search.evidence import BuildAnswer, BuildStatus
from torchbisect.containers.environment import Environment, Facts
from torchbisect.containers.process.run_command import Cancelled
from torchbisect.core.build import Build
from torchbisect.core.decode import decode
from torchbisect.core.errors import InstallFailed
from torchbisect.core.repro import fingerprint
from torchbisect.core.verdict import Verdict
from torchbisect.core.version import __version__
from torchbisect.pipeline.session import Session
from torchbisect.pipeline.warm_oracles import WarmOracles
from torchbisect.probe.agent_client import AgentFailed
from torchbisect.probe.module_sources import repro_identity
from torchbisect.probe.oracle import Oracle, Question


@dataclass(frozen=True)
class _KeptFacts:
    """The facts that the journal keeps beside an answer."""

    facts: Facts | None = None


def _kept_answer(data: Any) -> tuple[BuildAnswer, Facts | None]:
    return BuildAnswer.from_json(data), decode(_KeptFacts, data, "answer").facts


class BuildOracle:
    """Asks builds and keeps their answers in the journal; it may be used from several threads.

    Processes of builds stay open for later questions until ``end_idle``.

    Attributes:
        facts: what was read back from each installed build, by the build's name.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._oracles = WarmOracles(session.oracle)
        self._abandoned = False
        self.facts: dict[str, Facts] = {}

    def prepare(self, build: Build, expected: Question | None = None) -> None:
        """Start the processes of an installed build that may be asked soon, and check what that question depends on."""
        self._oracles.prepare(build, expected)

    def end_idle(self) -> None:
        """End the processes that wait for a question, and let their environments be removed."""
        self._oracles.close()

    def abandon(self) -> None:
        """End the questions that are asked now. They have no answer, and raise ``Cancelled``."""
        self._abandoned = True
        self._oracles.end_questions()

    def ask(self, build: Build, question: Question, *, again: bool = False) -> BuildAnswer:
        """Ask a whole install of a build, or return the journal's answer; ``again`` asks an environment made anew."""
        status = f"torch {build}" + (" once more" if again else "")
        return self._keep(
            self._key(build, question, again), status, build.name, self._ask_install(build, question, again)
        )

    def known(self, build: Build, question: Question) -> BuildAnswer | None:
        """Return the journal's first answer of a whole install, or ``None``."""
        return self._read(self._key(build, question, False), build.name)

    def ask_run(self, build: Build, question: Question, number: int) -> BuildAnswer:
        """Run a build once more, for a flaky script, or return the journal's answer; ``number`` counts from 1."""

        def verdict() -> Verdict:
            with self._lent(build) as oracle:
                return oracle.ask_once(question)

        def ask() -> BuildAnswer:
            return self._answer(verdict)

        return self._keep(self._key(build, question, "run", number), f"torch {build}, run {number}", build.name, ask)

    def known_run(self, build: Build, question: Question, number: int) -> BuildAnswer | None:
        """Return the journal's answer of one run, or ``None``."""
        return self._read(self._key(build, question, "run", number), build.name)

    def ask_environment(
        self, kind: str, name: str, opened: Callable[[], AbstractContextManager[Environment]], question: Question
    ) -> BuildAnswer:
        """Ask an altered environment that exists for this question alone, or return the journal's answer.

        Args:
            kind: the kind of the environment, such as ``thin`` or ``commit``.
            name: its name; together with ``kind`` it is unique in a run.
            opened: makes the environment; a failure there is no evidence.
        """

        def ask() -> BuildAnswer:
            def verdict() -> Verdict:
                self.end_idle()
                with opened() as environment, self._session.oracle_in(environment) as oracle:
                    return oracle.ask(question)

            return self._answer(verdict)

        return self._keep(self._fingerprint((kind, name), question), f"{kind} {name}", None, ask)

    def known_environment(self, kind: str, name: str, question: Question) -> BuildAnswer | None:
        """Return the journal's answer of an altered environment, or ``None``."""
        return self._read(self._fingerprint((kind, name), question), None)

    def _ask_install(self, build: Build, question: Question, again: bool) -> Callable[[], BuildAnswer]:
        def verdict() -> Verdict:
            with self._lent(build) as oracle:
                # The oracle's journal has the first answer; ``ask_in_fresh_process`` does not read it.
                return (oracle.ask_in_fresh_process if again else oracle.ask)(question)

        return lambda: self._answer(verdict)

    @contextmanager
    def _lent(self, build: Build) -> Iterator[Oracle]:
        """Lend the oracle of a build, and keep the facts of its environment."""
        with self._oracles.lend(build) as oracle:
            self.facts[build.name] = oracle.environment.facts
            yield oracle

    def _answer(self, verdict: Callable[[], Verdict]) -> BuildAnswer:
        """Return the answer for a verdict; an environment that fails is untestable."""
        began = time.monotonic()
        try:
            return replace(BuildAnswer.from_verdict(verdict()), seconds=time.monotonic() - began)
        except InstallFailed as error:
            return BuildAnswer(BuildStatus.UNTESTABLE, error.reason, str(error), time.monotonic() - began)
        except AgentFailed as error:
            if self._abandoned:
                raise Cancelled from error
            return BuildAnswer(BuildStatus.UNTESTABLE, "broken-environment", str(error), time.monotonic() - began)

    def _keep(self, key: str, status: str, name: str | None, ask: Callable[[], BuildAnswer]) -> BuildAnswer:
        """Return the journal's answer, or ask and enter the answer together with the facts of the build."""
        known = self._read(key, name)
        if known is not None:
            return known
        self._session.display.status(status)
        answer = ask()
        facts = self.facts.get(name or "")
        self._session.journal.put(key, {**answer.to_json(), "facts": facts and asdict(facts)})
        return answer

    def _read(self, key: str, name: str | None) -> BuildAnswer | None:
        kept = self._session.journal.get(key, _kept_answer)
        if kept is None:
            return None
        answer, facts = kept
        if name and facts:
            self.facts[name] = facts
        return answer

    def _key(self, build: Build, question: Question, *more: Any) -> str:
        maker = self._session.sources.maker(build)
        return self._fingerprint((build.requirement, maker.interpreter.identity, more), question)

    def _fingerprint(self, what: Any, question: Question) -> str:
        """Return the journal key of a question: everything that its answer depends on, and nothing else."""
        options = self._session.options
        where = (
            self._session.sources.interpreter.identity,
            options.packages,
            options.sandbox,
            options.image,
            options.runtime,
            options.device,
        )
        index = (options.index_url, options.variant)
        how = (options.repeat, asdict(self._session.options.limits), self._session.question_scope)
        asked = (repro_identity(question.repro), question.settings.to_json(), question.signature.to_json())
        return fingerprint("asked", __version__, what, where, index, how, asked)
