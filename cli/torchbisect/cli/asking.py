"""How one build, or one commit's Python, is asked about a target, and how its answer is kept."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, replace
from typing import Any

from torchbisect.bisect.evidence import Finding, Status
from torchbisect.bisect.judging import finding_of
from torchbisect.cli.tools import Tools
from torchbisect.containers.builds import Build
from torchbisect.containers.environments import Environment, Facts
from torchbisect.containers.errors import InstallFailed
from torchbisect.probe.client import AgentFailed
from torchbisect.probe.matching import Strictness
from torchbisect.probe.oracle import Oracle
from torchbisect.probe.repro import Repro, Settings, fingerprint
from torchbisect.probe.siblings import identity
from torchbisect.probe.signature import Signature
from torchbisect.probe.verdict import Verdict
from torchbisect.probe.version import __version__


@dataclass(frozen=True)
class Target:
    """What builds are asked about.

    Attributes:
        repro: the script.
        settings: what it is compiled with.
        signature: the mismatch that counts.
    """

    repro: Repro
    settings: Settings
    signature: Signature


class Asker:
    """Asks builds and keeps what they say; may be used from several threads.

    Attributes:
        facts: what was read back from each build that was installed, by its name.
    """

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self.facts: dict[str, Facts] = {}

    def ask(self, build: Build, target: Target, *, again: bool = False) -> Finding:
        """What a build shows, installed whole; from the journal if it was asked before.

        Args:
            build: the build.
            target: what it is asked about.
            again: a question of its own, in an environment started anew.
        """
        said = f"torch {build}" + (" once more" if again else "")
        return self._keep(self._key(build, target, again), said, build.name, self._asking(build, target, again))

    def known(self, build: Build, target: Target, *, again: bool = False) -> Finding | None:
        """What the journal says of a question; ``None`` if it was not asked before."""
        return self._read(self._key(build, target, again), build.name)

    def run(self, build: Build, target: Target, number: int, probe: Callable[[], Oracle]) -> Finding:
        """What one run shows, the ``number``-th of this build; for a script that does not do the same each time."""

        def ask() -> Finding:
            return self._finding(lambda: _once(probe(), target))

        return self._keep(self._key(build, target, "run", number), f"torch {build}, run {number}", build.name, ask)

    def known_run(self, build: Build, target: Target, number: int) -> Finding | None:
        """What the journal says of one run; ``None`` if there was none."""
        return self._read(self._key(build, target, "run", number), build.name)

    def ask_in(
        self, kind: str, name: str, opened: Callable[[], AbstractContextManager[Environment]], target: Target
    ) -> Finding:
        """What an environment shows that lasts for this one question: another build's, with other files in it.

        Args:
            kind: what it is: ``thin``, ``commit``.
            name: what it stands for; with ``kind`` it names one such environment in this run.
            opened: makes it; what fails there is no evidence.
            target: what is asked.
        """

        def ask() -> Finding:
            def verdict() -> Verdict:
                with opened() as environment, self._tools.probe_in(environment) as probe:
                    return _tolerantly(probe, target)

            return self._finding(verdict)

        return self._keep(self._fingerprint((kind, name), target), f"{kind} {name}", None, ask)

    def known_in(self, kind: str, name: str, target: Target) -> Finding | None:
        """What the journal says of such a question; ``None`` if it was not asked before."""
        return self._read(self._fingerprint((kind, name), target), None)

    def _asking(self, build: Build, target: Target, again: bool) -> Callable[[], Finding]:
        def verdict() -> Verdict:
            with self._tools.probe(build) as probe:
                self.facts[build.name] = probe.environment.facts
                # The probe's journal has the first answer: what is asked again goes past it.
                return _tolerantly(probe, target, anew=again)

        return lambda: self._finding(verdict)

    def _finding(self, verdict: Callable[[], Verdict]) -> Finding:
        began = time.monotonic()
        try:
            return replace(finding_of(verdict()), seconds=time.monotonic() - began)
        except InstallFailed as error:
            return Finding(Status.UNTESTABLE, error.reason, str(error), time.monotonic() - began)
        except AgentFailed as error:
            return Finding(Status.UNTESTABLE, "broken-environment", str(error), time.monotonic() - began)

    def _keep(self, key: str, what: str, name: str | None, ask: Callable[[], Finding]) -> Finding:
        """The journal's answer, or else a new one, which is kept with what was read back from the build."""
        known = self._read(key, name)
        if known is not None:
            return known
        self._tools.display.status(what)
        finding = ask()
        facts = self.facts.get(name or "")
        self._tools.journal.put(key, {**finding.to_json(), "facts": facts and asdict(facts)})
        return finding

    def _read(self, key: str, name: str | None) -> Finding | None:
        kept = self._tools.journal.get(key)
        if kept is None:
            return None
        if name and kept["facts"]:
            self.facts[name] = Facts(**kept["facts"])
        return Finding.from_json(kept)

    def _key(self, build: Build, target: Target, *more: Any) -> str:
        maker = self._tools.channels.maker(build)
        return self._fingerprint((build.requirement, maker.interpreter.identity, more), target)

    def _fingerprint(self, what: Any, target: Target) -> str:
        """The key of a question: all that shapes its answer, and nothing else."""
        options = self._tools.options
        where = (self._tools.interpreter.identity, options.packages, options.sandbox, options.image, options.device)
        index = (options.index_url, options.variant)
        how = (options.repeat, asdict(self._tools.limits), self._tools.question)
        asked = (identity(target.repro), target.settings.to_json(), target.signature.to_json())
        return fingerprint("asked", __version__, what, where, index, how, asked)


def _tolerantly(probe: Oracle, target: Target, *, anew: bool = False) -> Verdict:
    """Across builds: their internals are refactored between them."""
    ask = probe.confirm if anew else probe.ask
    return ask(target.repro, target.signature, target.settings, Strictness.TOLERANT)


def _once(probe: Oracle, target: Target) -> Verdict:
    return probe.ask_once(target.repro, target.signature, target.settings, Strictness.TOLERANT)
