"""Commits built by a command of the user's, where the Python alone does not tell: as ``git bisect run`` has it.

The command runs in a work tree of the clone, one for all commits so that a build can go on from the last one's, with a
virtual environment of its own on the path: what its ``python`` and ``pip`` install is what is asked. It is the
user's own and runs with the user's rights.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from torchbisect.bisect.search.evidence import Finding, Tested, Which
from torchbisect.bisect.search.find import find
from torchbisect.bisect.sources.commit import Culprit
from torchbisect.bisect.sources.commit_search import CommitRange
from torchbisect.bisect.sources.history import Commit, History
from torchbisect.containers.environment import Completed
from torchbisect.containers.process.commands import run_command
from torchbisect.containers.store.cache import Cache
from torchbisect.containers.venv.installer import find_uv
from torchbisect.containers.venv.readback import read_facts
from torchbisect.containers.venv.uv_errors import last_words
from torchbisect.containers.venv.venv import Venv
from torchbisect.core.build import Build, Channel
from torchbisect.core.errors import InstallFailed, MachineError
from torchbisect.probe.test_command import SKIP

#: From here on a status says that the command itself failed: not found, not executable, ended by a signal.
_BROKEN = 126


@dataclass(frozen=True)
class Builder:
    """Builds one commit after the other.

    Attributes:
        history: the clone; it gets one more work tree, which lies in the cache.
        command: what builds, for a shell.
        cache: where the work tree and the environment lie.
        like: an environment whose Python is taken.
        notify: told of each build.
    """

    history: History
    command: str
    cache: Cache
    like: Venv
    notify: Callable[[str], None]

    @contextmanager
    def built(self, commit: Commit) -> Iterator[Venv]:
        """An environment with a commit's torch, till the next one is built.

        Raises:
            InstallFailed: ``skipped`` or ``build-failed``, as the command ended; ``import-failed`` or ``other-version``
                if the torch that it left can't be imported or is another commit's.
            MachineError: the command can't be run at all.
        """
        lock = self.cache.install_lock("build")
        lock.acquire(waiting="waiting for another run that is building commits")
        try:
            tree, place = self.cache.root / "built" / "tree", self.cache.root / "built" / "environment"
            self.history.check_out(commit.sha, tree)
            if not (place / "bin" / "python").exists():
                self._environment(place)
            self.notify(f"building {commit}")
            self._build(commit, tree, place)
            yield self._read(commit, place)
        finally:
            lock.release()

    def _environment(self, place: Path) -> None:
        command = [find_uv(), "venv", "--seed", "--python", str(self.like.python), str(place)]
        done = run_command(command, environment=dict(os.environ), directory=self.cache.root)
        if done.status:
            raise MachineError(f"no environment for builds could be made: {last_words(done.errors)}")

    def _build(self, commit: Commit, tree: Path, place: Path) -> None:
        path = f"{place / 'bin'}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
        environment = {**os.environ, "PATH": path, "VIRTUAL_ENV": str(place), "TORCHBISECT_COMMIT": commit.sha}
        done = run_command(["sh", "-c", self.command], environment=environment, directory=tree)
        said = last_words(done.errors or done.output)
        if done.status == SKIP:
            raise InstallFailed("skipped", f"--build-cmd passed {commit.short} over ({said})")
        if done.status is None or done.status < 0 or done.status >= _BROKEN:
            raise MachineError(f"--build-cmd {self.command!r} can't be run (status {done.status}: {said}): correct it")
        if done.status:
            raise InstallFailed("build-failed", f"{commit.short} could not be built (status {done.status}: {said})")

    def _read(self, commit: Commit, place: Path) -> Venv:
        build = Build("0", Channel.COMMIT, commit=commit.sha)
        there = replace(self.like, build=build, python=place / "bin" / "python")

        def run(arguments: list[str], timeout: float) -> Completed:
            return there.run(arguments, timeout=timeout)

        facts = read_facts(run, build)
        if facts.git_version not in (None, "Unknown", commit.sha):
            raise InstallFailed("other-version", f"{commit.short} was built and torch says {facts.git_version}")
        return replace(there, build=replace(build, version=facts.torch), facts=facts)


def by_building(
    span: CommitRange,
    ask: Callable[[Commit], Finding],
    which: Which = Which.REGRESSION,
    *,
    on_answer: Callable[[Tested[Commit]], None] = lambda _: None,
) -> Culprit:
    """Which commit did it, by building them.

    Args:
        span: the range.
        ask: what a commit shows once it is built; untestable where it can't be.
        which: the older end is good (a regression) or bad (a fix).
        on_answer: told of each answer.
    """
    line = [span.base, *span.commits]
    bad, good = (len(line) - 1, 0) if which is Which.REGRESSION else (0, len(line) - 1)
    found = find(line, ask, bad=bad, good=good, find=which, on_answer=on_answer)
    edge = found.regression if which is Which.REGRESSION else found.fix
    if edge is None or edge.open:
        return Culprit(None, "no two commits could be built between which the answer changes", found)
    return Culprit(edge, None, found)
