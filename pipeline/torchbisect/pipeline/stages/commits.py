"""The commit search: from a pair of nightlies to the commit between them, its proof, and the suspects."""

from __future__ import annotations

import functools
from contextlib import nullcontext
from dataclasses import dataclass, replace

from torchbisect.bisect.search.evidence import AskedBuild, Boundary, BoundaryKind, BuildAnswer
from torchbisect.bisect.sources.commit_search import CommitRange, CommitSearchResult, PythonOverlay, commits_between
from torchbisect.bisect.sources.history import Commit, History
from torchbisect.bisect.sources.python_files import native_changes
from torchbisect.bisect.sources.source_build import CommitBuilder, find_culprit_by_building
from torchbisect.bisect.sources.suspects import Suspect, rank_suspects
from torchbisect.containers.environment import Environment
from torchbisect.core.build import Build
from torchbisect.core.errors import InputError, MachineError
from torchbisect.pipeline.build_oracle import BuildOracle
from torchbisect.pipeline.clone import open_history
from torchbisect.pipeline.session import Session
from torchbisect.pipeline.stages.proof import Proof, Prover
from torchbisect.probe.judge.signature import Signature
from torchbisect.probe.oracle import Question


@dataclass(frozen=True)
class BoundaryCommits:
    """The commits between two nightlies.

    Attributes:
        suspects: the same commits, the likeliest first, each with its reasons.
        how: the way they were asked: by their ``Python`` over the older build, or by a ``build`` of each.
        proofs: the answers of builds that have the bug, with the change of a commit reverted or applied.
    """

    span: CommitRange
    suspects: tuple[Suspect, ...]
    culprit: CommitSearchResult
    how: str = "Python"
    proofs: tuple[Proof, ...] = ()

    @property
    def commit(self) -> Commit | None:
        """The commit that the search found, or the one whose change alone makes a build pass."""
        return self.culprit.commit or next((proof.commit for proof in self.proofs if proof.passes), None)

    @property
    def sentence(self) -> str:
        """The result in one line."""
        if self.culprit.commit is not None:
            return f"the answer changes with the {self.how} of {self.culprit.commit}"
        if self.commit is not None:
            change = "reverting" if self.proofs[0].reverted else "applying"
            return f"the commits could not be told apart by asking them; {change} {self.commit} makes it pass"
        count = f"{len(self.span.commits)} commits lie between the two"
        if self.culprit.why_not is None and self.culprit.boundary is not None:
            return (
                f"{count}; the answer changes after {self.culprit.boundary.before} and by {self.culprit.boundary.after}"
            )
        native = len(native_changes(self.span.commits))
        more = f"; {native} of them change what has to be built" if native else ""
        return f"{count}; {self.culprit.why_not}{more}"


class CommitSearch:
    """Searches for the commit of a boundary; ``component`` is the compiler stage that was localized."""

    def __init__(self, session: Session, build_oracle: BuildOracle, component: str | None) -> None:
        self._session, self._build_oracle, self._component = session, build_oracle, component

    @property
    def wanted(self) -> bool:
        """True if the user's choice of channels includes commits."""
        channels = self._session.options.channels
        return not channels or "commit" in channels

    @functools.cached_property
    def _history(self) -> History:
        return open_history(self._session.options, self._session.display.result)

    def between(
        self, boundary: Boundary[Build], question: Question, newest_bad: Build | None = None
    ) -> BoundaryCommits | str:
        """Return the commits between the two nightlies of a boundary, or the reason why they are not known.

        Args:
            newest_bad: the newest build that still has the bug; a culprit is reverted on it too.

        Raises:
            InputError, MachineError: the user asked for commits by name, and the history can't be read.
            InstallFailed: the older build can no longer be installed.
        """
        older, newer = (self._build_oracle.facts.get(str(build)) for build in (boundary.before, boundary.after))
        if older is None or newer is None or boundary.before is None:
            return "nothing was read back from the builds, so their commits are not known"
        try:
            span = commits_between(self._history, older, newer)
            if not span.commits:
                return f"torch {boundary.before} and {boundary.after} were made from one commit, {span.base.short}"
            signature = question.signature
            suspects = rank_suspects(span.commits, self._component, _files(signature), _words(signature))
            self._session.display.result(f"{len(span.commits)} commits: {span.compare}")
            found = BoundaryCommits(span, suspects, self._culprit(boundary, boundary.before, span, question))
            found = self._proven(found, boundary, question, newest_bad)
            if found.commit is None and self._session.options.build_cmd is not None:
                built = self._built(boundary, boundary.before, _narrowed(span, found.culprit), question)
                found = replace(found, culprit=built, how="build")
                found = found if built.commit is None else self._proven(found, boundary, question, newest_bad)
            return found
        except (InputError, MachineError) as error:
            if "commit" in self._session.options.channels:
                raise
            return f"commits could not be searched: {error}"

    def _proven(
        self, found: BoundaryCommits, boundary: Boundary[Build], question: Question, newest_bad: Build | None
    ) -> BoundaryCommits:
        """Return the result with a proof of its commit, or where it has none, of the suspect that proves to be it."""
        reverted = boundary.kind is BoundaryKind.REGRESSION
        has_bug = boundary.after if reverted else boundary.before
        if has_bug is None:
            return found
        prover = Prover(self._session, self._build_oracle, self._history, question, reverted=reverted)
        if found.commit is not None:
            proofs: tuple[Proof, ...] = (prover.prove(found.commit, has_bug),)
        else:
            left = {commit.sha for commit in _narrowed(found.span, found.culprit).commits}
            proofs = prover.find([one.commit for one in found.suspects if one.commit.sha in left], has_bug)
            if not proofs or not proofs[-1].passes:
                return replace(found, proofs=proofs)
            proofs = proofs[-1:]
        if reverted and newest_bad is not None and newest_bad != has_bug:
            proofs = (*proofs, prover.prove(proofs[0].commit, newest_bad))
        return replace(found, proofs=proofs)

    def _culprit(
        self, boundary: Boundary[Build], build: Build, span: CommitRange, question: Question
    ) -> CommitSearchResult:
        maker = self._session.sources.maker(build)
        maker.environment(build)  # leased until the last copy of it is removed
        try:
            overlay = PythonOverlay(
                self._history,
                span,
                maker,
                build,
                lambda laid: self._build_oracle.ask_environment(
                    "commit", _name(laid), lambda: nullcontext(laid), question
                ),
            )
            jobs = self._session.options.jobs or 1
            return overlay.find_culprit(boundary.kind, jobs=jobs, on_answer=self._show)
        finally:
            maker.release(build)

    def _built(
        self, boundary: Boundary[Build], build: Build, span: CommitRange, question: Question
    ) -> CommitSearchResult:
        """Ask a build of each commit, made with the command of ``--build-cmd``."""
        session, command = self._session, self._session.options.build_cmd
        maker = session.sources.maker(build)
        older = maker.host_venv(build)  # the command line takes --build-cmd with --sandbox venv alone
        try:
            assert command is not None
            builder = CommitBuilder(self._history, command, session.sources.cache, older, session.display.status)

            def ask(commit: Commit) -> BuildAnswer:
                return self._build_oracle.ask_environment(
                    "build", f"{command} {commit.sha}", lambda: builder.built(commit), question
                )

            return find_culprit_by_building(span, ask, boundary.kind, on_answer=self._show)
        finally:
            maker.release(build)

    def _show(self, tested: AskedBuild[Commit]) -> None:
        reason = f" ({tested.reason})" if tested.reason else ""
        self._session.display.result(f"commit {tested.item}: {tested.status}{reason}")


def _narrowed(span: CommitRange, culprit: CommitSearchResult) -> CommitRange:
    """Return the part of a range that asking the Python files alone could not narrow."""
    if culprit.boundary is None or culprit.boundary.before is None or culprit.boundary.after is None:
        return span
    line = [span.base, *span.commits]
    first, last = line.index(culprit.boundary.before), line.index(culprit.boundary.after)
    return CommitRange(line[first], tuple(line[first + 1 : last + 1]))


def _name(laid: Environment) -> str:
    """Return the name of an environment with one commit's Python over a build's binaries."""
    return f"{laid.build.commit} over torch {laid.build.version}"


def _files(signature: Signature) -> frozenset[str]:
    """Return the files of torch in the failing stack."""
    return frozenset(frame.partition(":")[0] for frame in signature.frames_torch)


def _words(signature: Signature) -> list[str]:
    """Return words of the mismatch that a commit's subject may contain."""
    return [word for word in (signature.attribute, signature.exception, *(signature.subjects or ())) if word]
