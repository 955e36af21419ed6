"""Commits built from source by the user's command, for causes that are not in the Python files alone.

The command runs in a work tree of the clone. All commits share one tree, so each build can reuse the files of the one
before. Its ``PATH`` begins with a virtual environment: the torch that its ``python`` and ``pip`` install is asked. The
command is the user's own and runs with the user's rights.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from torchbisect.bisect.search.evidence import AskedBuild, BoundaryKind, BuildAnswer
from torchbisect.bisect.sources.commit_search import CommitRange, CommitSearchResult, search_commits
from torchbisect.bisect.sources.history import Commit, History
from torchbisect.bisect.sources.patch import Patch, apply_to_tree
from torchbisect.containers.environment import Venv, read_facts
from torchbisect.containers.process.run_command import run_command
from torchbisect.containers.store.cache import Cache
from torchbisect.containers.venv.installer import find_uv
from torchbisect.containers.venv.uv_errors import main_line
from torchbisect.core.build import Build, Channel
from torchbisect.core.errors import InstallFailed, MachineError
from torchbisect.probe.test_command import SKIP

#: Exit statuses from here on mean that the command itself failed: not found, not executable, ended by a signal.
_COMMAND_FAILED = 126


@dataclass(frozen=True)
class CommitBuilder:
    """Builds one commit after the other.

    Attributes:
        history: the clone; it gets one more work tree, which lies in the cache.
        command: the build command, for a shell.
        cache: the folder of the work tree and the environment.
        like: an environment whose Python is used.
        notify: called with a message before each build.
    """

    history: History
    command: str
    cache: Cache
    like: Venv
    notify: Callable[[str], None]

    @contextmanager
    def built(self, commit: Commit, patch: Patch | None = None, *, reverse: bool = False) -> Iterator[Venv]:
        """Give an environment with a commit's torch, until the next one is built.

        Args:
            patch: applied to the work tree before the build.
            reverse: take the patch back instead.

        Raises:
            InstallFailed: ``skipped`` or ``build-failed`` for the command's exit status; ``import-failed`` or
                ``other-version`` if the installed torch can't be imported or is another commit's;
                ``patch-does-not-apply``.
            MachineError: the command can't be run at all.
        """
        place = self.cache.root / "built" / "environment"
        with self._work_tree(commit, patch, reverse) as tree:
            if not (place / "bin" / "python").exists():
                self._make_environment(place)
            self.notify(f"building {commit}{'' if patch is None else f' with {patch.name}'}")
            self._build(commit, tree, place)
            yield self._read_back(commit, place)

    def check(self, commit: Commit, patch: Patch, *, reverse: bool = False) -> None:
        """Raise ``InstallFailed`` if a patch does not apply to a commit, before hours are spent on a build."""
        with self._work_tree(commit, patch, reverse):
            pass

    @contextmanager
    def _work_tree(self, commit: Commit, patch: Patch | None, reverse: bool) -> Iterator[Path]:
        """Give the work tree of a commit, with a patch applied or taken back, to one run at a time."""
        tree = self.cache.root / "built" / "tree"
        with self.cache.install_lock("build").held("waiting for another run that is building commits"):
            self.history.check_out(commit.sha, tree)
            if patch is not None:
                apply_to_tree(patch, tree, reverse=reverse)
            yield tree

    def _make_environment(self, place: Path) -> None:
        command = [find_uv(), "venv", "--seed", "--python", str(self.like.python), str(place)]
        done = run_command(command, environment=dict(os.environ), directory=self.cache.root)
        if done.status:
            raise MachineError(f"no environment for builds could be made: {main_line(done.errors)}")

    def _build(self, commit: Commit, tree: Path, place: Path) -> None:
        path = f"{place / 'bin'}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
        environment = {**os.environ, "PATH": path, "VIRTUAL_ENV": str(place), "TORCHBISECT_COMMIT": commit.sha}
        done = run_command(["sh", "-c", self.command], environment=environment, directory=tree)
        message = main_line(done.errors or done.output)
        if done.status == SKIP:
            raise InstallFailed("skipped", f"--build-cmd skipped {commit.short} ({message})")
        if done.status is None or done.status < 0 or done.status >= _COMMAND_FAILED:
            raise MachineError(
                f"--build-cmd {self.command!r} can't be run (status {done.status}: {message}): correct it"
            )
        if done.status:
            raise InstallFailed("build-failed", f"{commit.short} could not be built (status {done.status}: {message})")

    def _read_back(self, commit: Commit, place: Path) -> Venv:
        """Return the environment with the facts of the torch that was built."""
        build = Build("0", Channel.COMMIT, commit=commit.sha)
        there = replace(self.like, build=build, python=place / "bin" / "python")
        facts = read_facts(there.run, build)
        if facts.git_version not in (None, "Unknown", commit.sha):
            raise InstallFailed("other-version", f"{commit.short} was built and torch says {facts.git_version}")
        return replace(there, build=replace(build, version=facts.torch), facts=facts)


def find_culprit_by_building(
    commits: CommitRange,
    ask: Callable[[Commit], BuildAnswer],
    kind: BoundaryKind = BoundaryKind.REGRESSION,
    *,
    on_answer: Callable[[AskedBuild[Commit]], None] = lambda _: None,
) -> CommitSearchResult:
    """Find the commit that changes the answer by building commits.

    ``ask`` builds a commit and asks it; untestable if it can't be built. The older end is good (a regression) or bad
    (a fix).
    """
    nothing_found = "no two commits could be built between which the answer changes"
    return search_commits([commits.base, *commits.commits], ask, kind, nothing_found, on_answer=on_answer)
