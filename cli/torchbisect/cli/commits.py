"""From a pair of nightlies to the commit: the history, the suspects, and each commit's Python over one install."""

from __future__ import annotations

import datetime
import functools
import time
from dataclasses import asdict, dataclass, replace

from torchbisect.bisect.channels.commit import Culprit, find_culprit, layer, native_changes
from torchbisect.bisect.history import PYTORCH, Commit, History
from torchbisect.bisect.judging import finding_of
from torchbisect.bisect.overlay import lay_over, take_away
from torchbisect.bisect.search import Edge, Finding, Status, Tested
from torchbisect.bisect.suspects import Suspect, rank
from torchbisect.cli.bisecting import Bisection, Target
from torchbisect.cli.tools import Tools
from torchbisect.containers.builds import Build
from torchbisect.containers.errors import InputError, InstallFailed, MachineError
from torchbisect.probe.client import AgentFailed
from torchbisect.probe.matching import Strictness
from torchbisect.probe.repro import fingerprint
from torchbisect.probe.signature import Signature
from torchbisect.probe.version import __version__


@dataclass(frozen=True)
class Between:
    """What lies between two nightlies.

    Attributes:
        older: the commit on main that the older one was made from.
        newer: that of the newer one.
        commits: those after ``older`` up to ``newer``, oldest first.
        suspects: the same, the likeliest first, each with its reasons.
        culprit: what asking them came to; ``None`` if they were not asked.
    """

    older: str
    newer: str
    commits: tuple[Commit, ...]
    suspects: tuple[Suspect, ...]
    culprit: Culprit | None = None

    @property
    def compare(self) -> str:
        """Where the commits between the two can be read."""
        return f"{PYTORCH}/compare/{self.older}...{self.newer}"

    @property
    def words(self) -> str:
        """What was found, in one line."""
        found = self.culprit.commit if self.culprit else None
        if found is not None:
            return f"the answer changes with the Python of {found}"
        count = f"{len(self.commits)} commits lie between {self.older[:10]} and {self.newer[:10]}"
        if self.culprit is None:
            return count
        why = self.culprit.why_not
        if why is None and self.culprit.edge is not None:
            return f"{count}; the answer changes after {self.culprit.edge.before} and by {self.culprit.edge.after}"
        native = len(native_changes(self.commits))
        return f"{count}; {why}" + (f"; {native} of them change what has to be built" if native else "")


class Commits:
    """Looks for the commit of an edge.

    Args:
        tools: what the run works with.
        bisection: knows what was read back from the builds.
        component: the compiler stage that localisation named.
    """

    def __init__(self, tools: Tools, bisection: Bisection, component: str | None) -> None:
        self._tools, self._bisection, self._component = tools, bisection, component

    @property
    def wanted(self) -> bool:
        """Whether the user's choice of channels includes commits."""
        channels = self._tools.options.channels
        return not channels or "commit" in channels

    @functools.cached_property
    def _history(self) -> History:
        options = self._tools.options
        return History.open(
            options.git or PYTORCH, self._tools.channels.cache.root / "git", notify=self._tools.display.result
        )

    def between(self, edge: Edge[Build], target: Target) -> Between | str:
        """What lies between the two nightlies of an edge, and which commit it was, or in a line why that can't be said.

        Raises:
            TorchbisectError: commits were asked for by name, and the history can't be read.
        """
        try:
            return self._between(edge, target)
        except (InputError, MachineError) as error:
            if "commit" in self._tools.options.channels:
                raise
            return f"commits could not be searched: {error}"

    def _between(self, edge: Edge[Build], target: Target) -> Between | str:
        older, newer = self._main(edge.before), self._main(edge.after)
        if older is None or newer is None:
            lost = edge.before if older is None else edge.after
            return f"the commit that torch {lost} was made from is not in the history"
        if older == newer:
            return f"torch {edge.before} and {edge.after} were made from one commit, {older[:10]}"
        commits = self._history.between(older, newer)
        suspects = rank(commits, self._component, _files(target.signature), _words(target.signature))
        found = Between(older, newer, commits, suspects)
        self._tools.display.result(found.words)
        assert edge.before is not None
        return replace(found, culprit=self._culprit(edge, edge.before, older, commits, target))

    def _main(self, build: Build | None) -> str | None:
        facts = self._bisection.facts.get(build.name) if build is not None else None
        return self._history.main_commit(facts.git_version) if facts and facts.git_version else None

    def _culprit(
        self, edge: Edge[Build], build: Build, older: str, commits: tuple[Commit, ...], target: Target
    ) -> Culprit:
        """Ask the commits' Python over the older end's installation."""
        base = Commit(older, f"torch {build}", datetime.datetime.fromtimestamp(0, datetime.timezone.utc))
        return find_culprit(
            base, commits, lambda commit: self._ask(build, older, commit, target), edge.which, on_answer=self._say
        )

    def _ask(self, build: Build, older: str, commit: Commit, target: Target) -> Finding:
        tools = self._tools
        key = fingerprint(
            "commit", __version__, build.requirement, older, commit.sha, tools.interpreter.identity,
            tools.options.packages, target.repro.to_json(), target.settings.to_json(), target.signature.to_json(),
        )  # fmt: skip
        known = tools.journal.get(key)
        if known is not None:
            return Finding(Status(known["status"]), known["reason"], known["detail"], known["seconds"])
        tools.display.status(f"commit {commit}")
        finding = self._ask_over(build, older, commit, target)
        tools.journal.put(key, {**asdict(finding), "status": finding.status.value})
        return finding

    def _ask_over(self, build: Build, older: str, commit: Commit, target: Target) -> Finding:
        tools, began = self._tools, time.monotonic()
        venvs = tools.channels.venvs(build)
        try:
            base = venvs.environment(build)
        except InstallFailed as error:
            return Finding(Status.UNTESTABLE, error.reason, str(error), time.monotonic() - began)
        try:
            laid = lay_over(base, layer(self._history, older, commit.sha), commit.sha, tools.channels.cache.making)
            try:
                with tools.probe_in(laid) as probe:
                    verdict = probe.ask(target.repro, target.signature, target.settings, Strictness.TOLERANT)
                return replace(finding_of(verdict), seconds=time.monotonic() - began)
            except AgentFailed as error:
                return Finding(Status.UNTESTABLE, "import-failed", str(error), time.monotonic() - began)
            finally:
                take_away(laid)
        finally:
            venvs.release(build)

    def _say(self, tested: Tested[Commit]) -> None:
        reason = f" ({tested.reason})" if tested.reason else ""
        self._tools.display.result(f"commit {tested.item}: {tested.status}{reason}")


def _files(signature: Signature) -> frozenset[str]:
    """The files of torch that the failing stack goes through."""
    return frozenset(frame.partition(":")[0] for frame in signature.frames_torch)


def _words(signature: Signature) -> list[str]:
    """Words of the mismatch that a commit's subject may hold."""
    return [word for word in (signature.attribute, signature.exception) if word]
