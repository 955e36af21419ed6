"""The bisect stage: asks builds through the probe, and says what goes on."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from torchbisect.bisect.judging import finding_of
from torchbisect.bisect.search import Finding, Findings, Status, Tested, Which, find
from torchbisect.bisect.selection import check_order
from torchbisect.cli.tools import Tools
from torchbisect.containers.builds import Build, Channel
from torchbisect.containers.environments import Facts
from torchbisect.containers.errors import InputError, InstallFailed
from torchbisect.probe.client import AgentFailed
from torchbisect.probe.matching import Strictness
from torchbisect.probe.repro import Repro, Settings, fingerprint
from torchbisect.probe.signature import Signature
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


class Bisection:
    """Asks builds about one target; may be asked from several threads.

    Args:
        tools: what the run works with.
        failing: the build where the target is known to fail.
    """

    def __init__(self, tools: Tools, failing: Build) -> None:
        self._tools = tools
        self._failing = failing
        self.facts: dict[str, Facts] = {}

    def search(self, target: Target) -> Findings[Build]:
        """Find where it broke and where it was mended.

        Raises:
            InputError: ``--good`` and ``--bad`` can't be what they are said to be.
            MachineError: the search could not go on.
        """
        tools, options = self._tools, self._tools.options
        builds = tools.releases.builds
        bad = self._position(options.bad) if options.bad else self._position_of(self._failing)
        good = self._position(options.good) if options.good else None
        which = Which(options.find)
        if good is not None:
            check_order(builds[good], builds[bad], which)
        self._answered, self._total = 0, self._estimate(len(builds), which)
        return find(
            builds,
            lambda build: self.ask(build, target),
            bad=bad,
            good=good,
            find=which,
            cached=tools.venvs.has,
            jobs=options.jobs,
            ask_again=lambda build: self.ask(build, target, again=True),
            on_answer=self._say,
        )

    def ask(self, build: Build, target: Target, *, again: bool = False) -> Finding:
        """What this build shows; from the journal if it was asked before.

        Args:
            build: the build.
            target: what it is asked about.
            again: a question of its own, in an environment started anew.
        """
        tools = self._tools
        key = fingerprint(
            "build", __version__, build.requirement, tools.interpreter.identity, tools.options.packages,
            target.repro.to_json(), target.settings.to_json(), target.signature.to_json(), tools.options.repeat, again,
        )  # fmt: skip
        known = tools.journal.get(key)
        if known is not None:
            if known.get("facts"):
                self.facts[build.name] = Facts(**known["facts"])
            return Finding(Status(known["status"]), known["reason"], known["detail"], known["seconds"])
        tools.display.status(f"torch {build}" + (" once more" if again else ""))
        finding = self._ask(build, target)
        facts = self.facts.get(build.name)
        tools.journal.put(key, {**asdict(finding), "status": finding.status.value, "facts": facts and asdict(facts)})
        return finding

    def _ask(self, build: Build, target: Target) -> Finding:
        began = time.monotonic()
        try:
            with self._tools.probe(build) as probe:
                self.facts[build.name] = probe.environment.facts
                verdict = probe.ask(target.repro, target.signature, target.settings, Strictness.TOLERANT)
                return replace(finding_of(verdict), seconds=time.monotonic() - began)
        except InstallFailed as error:
            return Finding(Status.UNTESTABLE, error.reason, str(error), time.monotonic() - began)
        except AgentFailed as error:
            return Finding(Status.UNTESTABLE, "broken-environment", str(error), time.monotonic() - began)

    def _position(self, text: str) -> int:
        return self._position_of(self._tools.release(text))

    def _position_of(self, build: Build) -> int:
        """Where a build stands among the releases; one that isn't a release stands at the release it was made from."""
        builds = self._tools.releases.builds
        for position, other in enumerate(builds):
            if other.name == build.name:
                return position
        if build.channel is not Channel.INSTALLED or not builds:
            raise InputError(f"torch {build} isn't among the releases that can be asked: see torchbisect builds")
        older = [position for position, other in enumerate(builds) if other.minor <= build.minor]
        return older[-1] if older else 0

    def _say(self, tested: Tested[Build]) -> None:
        self._answered += 1
        text = f"torch {tested.item}: {tested.status}" + (f" ({tested.reason})" if tested.reason else "")
        left = max(0, self._total - self._answered)
        self._tools.display.result(text + (" again" if tested.again else "") + (f"; about {left} more" if left else ""))
        if tested.detail:
            self._tools.display.detail(tested.detail)

    @staticmethod
    def _estimate(count: int, which: Which) -> int:
        sides = 2 if which is Which.BOTH else 1
        return 1 + sides * (math.ceil(math.log2(max(2, count))) + 1)


def edge_builds(findings: Findings[Build]) -> Sequence[Build]:
    """The builds on both sides of every edge that was found, without repeats, oldest first."""
    found: dict[str, Build] = {}
    for edge in (findings.regression, findings.fix):
        for build in (edge.before, edge.after) if edge else ():
            if build is not None:
                found[build.name] = build
    return tuple(found.values())
