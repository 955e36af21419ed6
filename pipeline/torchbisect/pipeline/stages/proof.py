"""The proof of a commit: the bug is gone where a culprit is reverted, or where a fix is applied.

The change is made to the Python files of a whole build. Nothing is built, so it also tells of commits that could not be
asked themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from torchbisect.bisect import wording
from torchbisect.bisect.search.evidence import BuildAnswer, BuildStatus
from torchbisect.bisect.sources.history import Commit, History
from torchbisect.bisect.sources.patch import commit_patch
from torchbisect.bisect.sources.patched_build import patched_build
from torchbisect.bisect.sources.python_files import is_native, is_replaceable
from torchbisect.containers.environment import Environment
from torchbisect.core.build import Build
from torchbisect.core.errors import InputError, InstallFailed
from torchbisect.pipeline.build_oracle import BuildOracle
from torchbisect.pipeline.session import Session
from torchbisect.probe.oracle import Question

#: The most suspects of an open range whose change is tried.
MOST_TRIED = 10


@dataclass(frozen=True)
class Proof:
    """The answer of a build with a commit's change.

    Attributes:
        build: the build, which has the bug as it is.
        reverted: the change was reverted, not applied.
        answer: the answer with the change; good if the bug is gone.
    """

    commit: Commit
    build: Build
    reverted: bool
    answer: BuildAnswer

    @property
    def passes(self) -> bool | None:
        """True if the bug is gone, false if it is still there, ``None`` if it can't be told."""
        return None if not self.answer.status.testable else self.answer.status is BuildStatus.GOOD

    @property
    def why_not(self) -> str | None:
        """The reason if it can't be told."""
        return (self.answer.detail or self.answer.reason) if self.passes is None else None

    @property
    def sentence(self) -> str:
        """The proof in one line."""
        result = wording.proof_result(self.passes, self.why_not)
        return f"{wording.change_verb(self.reverted)} {self.commit.short} on {self.build} {result}"


class Prover:
    """Asks builds with the change of a commit.

    Args:
        question: the question that the search asked.
        reverted: changes are reverted (of a regression) or applied (of a fix).
    """

    def __init__(
        self, session: Session, build_oracle: BuildOracle, history: History, question: Question, *, reverted: bool
    ) -> None:
        self._session, self._build_oracle, self._history = session, build_oracle, history
        self._question, self._reverted = question, reverted

    def prove(self, commit: Commit, build: Build) -> Proof:
        """Ask a build that has the bug, with the change of a commit."""
        kind = "revert" if self._reverted else "apply"
        answer = self._build_oracle.ask_environment(
            kind, f"{commit.sha} on torch {build.requirement}", lambda: self._changed(commit, build), self._question
        )
        proof = Proof(commit, build, self._reverted, answer)
        self._session.display.result(proof.sentence)
        return proof

    def find(self, suspects: Sequence[Commit], build: Build) -> tuple[Proof, ...]:
        """Try suspects, the likeliest first, until the bug is gone; return every attempt.

        Suspects that change compiled code, or none of the installation's files, are passed over. ``MOST_TRIED`` others
        are asked at most.
        """
        attempts: list[Proof] = []
        for commit in filter(_shows_on_a_wheel, suspects):
            attempts.append(self.prove(commit, build))
            if attempts[-1].passes or len(attempts) == MOST_TRIED:
                break
        return tuple(attempts)

    @contextmanager
    def _changed(self, commit: Commit, build: Build) -> Iterator[Environment]:
        try:
            patch = commit_patch(self._history, commit.sha)
        except InputError as error:
            raise InstallFailed("no-python", str(error)) from error
        maker = self._session.sources.maker(build)
        with (
            self._session.provider.environment(build) as base,
            patched_build(maker, build, base, patch, reverse=self._reverted) as (changed, _),
        ):
            yield changed


def _shows_on_a_wheel(commit: Commit) -> bool:
    """Return true if a commit's change shows without a build."""
    return any(map(is_replaceable, commit.files)) and not any(map(is_native, commit.files))
