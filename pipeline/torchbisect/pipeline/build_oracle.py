"""How one build, or one commit's Python, is asked a question, and how its answer is kept."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict, replace
from typing import Any

from torchbisect.bisect.search.evidence import BuildAnswer, BuildStatus
from torchbisect.containers.environment import Environment, Facts
from torchbisect.core.build import Build
from torchbisect.core.errors import InstallFailed
from torchbisect.core.repro import fingerprint
from torchbisect.core.verdict import Verdict
from torchbisect.core.version import __version__
from torchbisect.pipeline.session import Session
from torchbisect.probe.agent_client import AgentFailed
from torchbisect.probe.local_modules import identity
from torchbisect.probe.oracle import Oracle
from torchbisect.probe.question import Question


class BuildOracle:
    """Asks builds and keeps what they say; may be used from several threads.

    Attributes:
        facts: what was read back from each build that was installed, by its name.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self.facts: dict[str, Facts] = {}

    def ask(self, build: Build, question: Question, *, again: bool = False) -> BuildAnswer:
        """What a build shows, installed whole; from the journal if it was asked before.

        Args:
            build: the build.
            question: what it is asked.
            again: a question of its own, in an environment started anew.
        """
        said = f"torch {build}" + (" once more" if again else "")
        return self._keep(self._key(build, question, again), said, build.name, self._asking(build, question, again))

    def known(self, build: Build, question: Question, *, again: bool = False) -> BuildAnswer | None:
        """What the journal says of a question; ``None`` if it was not asked before."""
        return self._read(self._key(build, question, again), build.name)

    def run(self, build: Build, question: Question, number: int, probe: Callable[[], Oracle]) -> BuildAnswer:
        """What one run shows, the ``number``-th of this build; for a script that does not do the same each time."""

        def ask() -> BuildAnswer:
            return self._finding(lambda: probe().ask_once(question))

        return self._keep(self._key(build, question, "run", number), f"torch {build}, run {number}", build.name, ask)

    def known_run(self, build: Build, question: Question, number: int) -> BuildAnswer | None:
        """What the journal says of one run; ``None`` if there was none."""
        return self._read(self._key(build, question, "run", number), build.name)

    def ask_in(
        self, kind: str, name: str, opened: Callable[[], AbstractContextManager[Environment]], question: Question
    ) -> BuildAnswer:
        """What an environment shows that lasts for this one question: another build's, with other files in it.

        Args:
            kind: what it is: ``thin``, ``commit``.
            name: what it stands for; with ``kind`` it names one such environment in this run.
            opened: makes it; what fails there is no evidence.
            question: what is asked.
        """

        def ask() -> BuildAnswer:
            def verdict() -> Verdict:
                with opened() as environment, self._session.oracle_in(environment) as probe:
                    return probe.ask(question)

            return self._finding(verdict)

        return self._keep(self._fingerprint((kind, name), question), f"{kind} {name}", None, ask)

    def known_in(self, kind: str, name: str, question: Question) -> BuildAnswer | None:
        """What the journal says of such a question; ``None`` if it was not asked before."""
        return self._read(self._fingerprint((kind, name), question), None)

    def _asking(self, build: Build, question: Question, again: bool) -> Callable[[], BuildAnswer]:
        def verdict() -> Verdict:
            with self._session.oracle(build) as probe:
                self.facts[build.name] = probe.environment.facts
                # The probe's journal has the first answer: what is asked again goes past it.
                return (probe.ask_in_fresh_process if again else probe.ask)(question)

        return lambda: self._finding(verdict)

    def _finding(self, verdict: Callable[[], Verdict]) -> BuildAnswer:
        began = time.monotonic()
        try:
            return replace(BuildAnswer.from_verdict(verdict()), seconds=time.monotonic() - began)
        except InstallFailed as error:
            return BuildAnswer(BuildStatus.UNTESTABLE, error.reason, str(error), time.monotonic() - began)
        except AgentFailed as error:
            return BuildAnswer(BuildStatus.UNTESTABLE, "broken-environment", str(error), time.monotonic() - began)

    def _keep(self, key: str, what: str, name: str | None, ask: Callable[[], BuildAnswer]) -> BuildAnswer:
        """The journal's answer, or else a new one, which is kept with what was read back from the build."""
        known = self._read(key, name)
        if known is not None:
            return known
        self._session.display.status(what)
        finding = ask()
        facts = self.facts.get(name or "")
        self._session.journal.put(key, {**finding.to_json(), "facts": facts and asdict(facts)})
        return finding

    def _read(self, key: str, name: str | None) -> BuildAnswer | None:
        kept = self._session.journal.get(key)
        if kept is None:
            return None
        if name and kept["facts"]:
            self.facts[name] = Facts(**kept["facts"])
        return BuildAnswer.from_json(kept)

    def _key(self, build: Build, question: Question, *more: Any) -> str:
        maker = self._session.channels.maker(build)
        return self._fingerprint((build.requirement, maker.interpreter.identity, more), question)

    def _fingerprint(self, what: Any, question: Question) -> str:
        """The key of a question: all that shapes its answer, and nothing else."""
        options = self._session.options
        where = (
            self._session.channels.interpreter.identity,
            options.packages,
            options.sandbox,
            options.image,
            options.device,
        )
        index = (options.index_url, options.variant)
        how = (options.repeat, asdict(self._session.options.limits), self._session.question_scope)
        asked = (identity(question.repro), question.settings.to_json(), question.signature.to_json())
        return fingerprint("asked", __version__, what, where, index, how, asked)
