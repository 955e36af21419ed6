"""PyTorch's history from a git clone: the commit of a nightly on main, and the commits between two commits.

A nightly is built from the branch ``nightly``. Its commits are made by ``git commit-tree`` over the tree of
``viable/strict``, with the subject ``2026-08-16 nightly release (<commit on main>)``. ``torch.version.git_version`` in
the wheel is the commit on the branch ``nightly``; its subject leads to the commit on main, as in PyTorch's
``tools/nightly.py``. The day in a wheel's name is the day of the build and may be one off, so the git version decides.
"""

from __future__ import annotations

import contextlib
import datetime
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchbisect.containers.store.disk import disk_errors
from torchbisect.containers.store.locks import FileLock
from torchbisect.containers.store.removal import remove_tree
from torchbisect.core.errors import InputError, MachineError
from torchbisect.core.retry import Notify, silent
from torchbisect.core.scrub import scrub_secrets

if TYPE_CHECKING:
    import git

#: The address of PyTorch's history, unless ``--git`` names a clone or a mirror.
PYTORCH = "https://github.com/pytorch/pytorch"

_SUBJECT = re.compile(r"^(\d{4}-\d\d-\d\d) nightly release \(([0-9a-f]{40})\)$")
#: A commit as it is typed: its full name or the beginning of it.
SHA = re.compile(r"[0-9a-f]{7,40}")
_REVERT = 'Revert "'
_REVERTED = re.compile(r"^This reverts commit ([0-9a-f]{40})", re.MULTILINE)
#: Fields end with NUL, the one character that no message of a commit has.
_AS_RECORDS = ("--name-only", "--no-renames", "--format=%x00%H%x00%ct%x00%B%x00")
_FIRST_MOMENT = datetime.datetime.fromtimestamp(0, datetime.timezone.utc)


@dataclass(frozen=True)
class Commit:
    """A commit on main.

    Attributes:
        sha: its full name.
        subject: the first line of its message.
        reverts: the full name of the commit that it reverts, or ``None``.
        files: the paths it changes, from the repository's root.
    """

    sha: str
    subject: str
    date: datetime.datetime
    reverts: str | None = None
    files: tuple[str, ...] = ()

    @property
    def short(self) -> str:
        """The first ten digits of the name, as PyTorch's issues write it."""
        return self.sha[:10]

    @property
    def is_revert(self) -> bool:
        """True if it reverts another commit."""
        return self.reverts is not None or self.subject.startswith(_REVERT)

    def __str__(self) -> str:
        return f"{self.short} {self.subject}"


def reverted_commit(message: str) -> str | None:
    """Return the commit that a commit reverts, from its message; ``None`` if it reverts none."""
    reverted = _REVERTED.search(message) if message.startswith(_REVERT) else None
    return reverted.group(1) if reverted else None


class History:
    """A clone of PyTorch. It needs no work tree, and nothing in it is changed."""

    def __init__(self, repository: git.Repo) -> None:
        self._repository = repository

    @classmethod
    def open(cls, place: str, cache: Path, *, notify: Notify = silent, fetch: bool = True) -> History:
        """Open the clone at ``place``, or clone that address.

        Args:
            place: a folder with a clone, which is used as it is; or an address. A partial clone of the address is kept
                in ``cache`` and brought up to date. It takes a few hundred MB and fetches file contents when needed.
            cache: the folder for clones.
            notify: called before something that takes long.
            fetch: bring a clone in the cache up to date.

        Raises:
            InputError: if the folder holds no git repository.
            MachineError: if git isn't installed, or the address can't be cloned.
        """
        module = _git()
        if "://" not in place and not re.match(r"[\w.-]+@[\w.-]+:", place):
            try:
                return cls(module.Repo(Path(place).expanduser()))
            except (module.InvalidGitRepositoryError, module.NoSuchPathError):
                raise InputError(f"{place} is no git repository: name a clone of PyTorch with --git") from None
        name = re.sub(r"[^A-Za-z0-9]+", "-", scrub_secrets(place)).strip("-")
        target = cache / f"{name}.git"
        if not target.exists():
            notify(f"cloning the history of {scrub_secrets(place)} (once; without file contents)")
            _clone(module, place, target)
            return cls(module.Repo(target))
        repository = module.Repo(target)
        if fetch:
            notify(f"fetching new history of {scrub_secrets(place)}")
            with _git_errors(module, f"the history of {scrub_secrets(place)} can't be fetched"):
                repository.git.fetch("--prune", "origin", "+refs/heads/*:refs/heads/*")
        return cls(repository)

    @property
    def objects(self) -> Path:
        """The folder with the objects of the clone."""
        return Path(self._repository.common_dir).resolve() / "objects"

    def main_commit(self, git_version: str) -> str | None:
        """Return the commit on main that a build was made from; ``None`` if this clone doesn't have it.

        ``git_version`` is a commit on the nightly branch for a nightly, else one on main or on a release branch.
        """
        sha = self._resolve(git_version)
        if sha is None:
            return None
        match = _SUBJECT.match(self._log("-1", "--format=%s", sha).strip())
        return self._resolve(match.group(2)) if match else sha

    def commit(self, sha: str) -> Commit:
        """Read one commit. Raises ``InputError`` if the clone lacks it."""
        text = self._log("-1", "-m", "--first-parent", *_AS_RECORDS, self._known(sha))
        return next(_commits(text))

    def between(self, older: str, newer: str) -> tuple[Commit, ...]:
        """Return the commits after ``older`` up to ``newer``, oldest first, along main's first parents.

        Raise ``InputError`` if the clone lacks one of them, or ``older`` is no ancestor of ``newer``.
        """
        start, end = self._known(older), self._known(newer)
        ancestry = ("--is-ancestor", start, end)
        if self._repository.git.merge_base(*ancestry, with_exceptions=False, with_extended_output=True)[0] != 0:
            raise InputError(
                f"{older[:10]} is not in the history of {newer[:10]}: no commits lie between builds of two branches"
            )
        text = self._log("-m", "--first-parent", "--reverse", *_AS_RECORDS, f"{start}..{end}")
        return tuple(_commits(text))

    def changed(self, older: str, newer: str) -> dict[str, bool]:
        """Return the paths that differ between two commits' trees; true for those that ``newer`` has."""
        ends = self._known(older), self._known(newer)
        fields = str(self._repository.git.diff("--no-renames", "--name-status", "-z", *ends)).split("\0")
        return {path: status != "D" for status, path in zip(fields[::2], fields[1::2])}

    def prefetch_changes(self, older: str, newer: str) -> None:
        """Fetch at once all contents that a partial clone lacks of the files that differ between two commits.

        Reading the files one by one takes a request for each. To show a difference, git fetches all at once.
        """
        promised = self._repository.git.config("--get", "remote.origin.promisor", with_exceptions=False)
        if promised == "true":
            with _git_errors(_git(), "the files that changed can't be fetched"):
                self._repository.git.diff("--no-renames", "--numstat", self._known(older), self._known(newer))

    def read(self, sha: str, path: str) -> bytes:
        """Return a file's contents at a commit. Raises ``InputError`` if the commit lacks it."""
        module = _git()
        try:
            # Only the git program fetches what a partial clone lacks; reading objects in this process does not.
            blob: bytes = self._repository.git.cat_file(
                "blob", f"{sha}:{path}", stdout_as_string=False, strip_newline_in_stdout=False
            )
        except module.GitCommandError as error:
            raise InputError(f"{path} can't be read at {sha[:10]}: {_last_line(error)}") from error
        return blob

    def diff(self, sha: str) -> str:
        """Return what a commit changes, as a unified diff against its first parent.

        Raises:
            InputError: the clone lacks the commit.
            MachineError: git can't read it.
        """
        known = self._known(sha)
        with _git_errors(_git(), f"the changes of {sha[:10]} can't be read"):
            text: bytes = self._repository.git.diff(
                "--no-renames",
                "--full-index",
                f"{known}^1",
                known,
                stdout_as_string=False,
                strip_newline_in_stdout=False,
            )
        return text.decode("utf-8", "surrogateescape")

    def commit_of_pull(self, number: int) -> str | None:
        """Return the newest commit that a pull request was merged as; ``None`` if this clone has none."""
        mark = f"(#{number})"
        # A revert quotes the subject, and other messages name the number.
        for line in self._log("--all", "--fixed-strings", f"--grep={mark}", "--format=%H %s").splitlines():
            sha, _, subject = line.partition(" ")
            if subject.endswith(mark):
                return sha
        return None

    def check_out(self, sha: str, tree: Path) -> None:
        """Check a commit out into a work tree; untracked files in it stay. Raise ``MachineError`` if git fails."""
        with disk_errors(tree.parent), _git_errors(_git(), f"{sha[:10]} can't be checked out at {tree}"):
            tree.parent.mkdir(parents=True, exist_ok=True)
            if (tree / ".git").exists():
                _git().Repo(tree).git.checkout("--force", "--detach", sha)
            else:
                self._repository.git.worktree("prune")
                self._repository.git.worktree("add", "--force", "--detach", str(tree), sha)

    def _known(self, name: str) -> str:
        sha = self._resolve(name)
        if sha is None:
            raise InputError(f"this clone of PyTorch has no commit {name[:10]}: fetch, or name another with --git")
        return sha

    def _resolve(self, name: str) -> str | None:
        module = _git()
        if not name.startswith("refs/") and not SHA.fullmatch(name):
            return None
        try:
            return str(self._repository.git.rev_parse("--verify", "--quiet", f"{name}^{{commit}}"))
        except module.GitCommandError:
            return None

    def _log(self, *arguments: str) -> str:
        with _git_errors(_git(), "the history can't be read"):
            return str(self._repository.git.log(*arguments))


def _commits(text: str) -> Iterator[Commit]:
    fields = text.split("\0")[1:]
    for sha, moment, message, files in zip(*[iter(fields)] * 4):
        yield Commit(
            sha=sha,
            subject=message.partition("\n")[0],
            date=_date(moment),
            reverts=reverted_commit(message),
            files=tuple(dict.fromkeys(line for line in files.splitlines() if line)),
        )


def _date(moment: str) -> datetime.datetime:
    """Return the time of a commit, whose author may have set any number."""
    try:
        return datetime.datetime.fromtimestamp(int(moment), datetime.timezone.utc)
    except (ValueError, OverflowError, OSError):
        return _FIRST_MOMENT


def _git() -> Any:
    """Import GitPython, which can't be imported where there is no git program."""
    try:
        import git
    except ImportError as error:
        raise MachineError(f"git can't be used here ({error}): install it, or do without commits") from error
    return git


def _clone(module: Any, place: str, target: Path) -> None:
    """Clone under a temporary name, so that no clone is ever incomplete; one process clones and others wait for it."""
    making = target.with_suffix(".making")
    with FileLock(target.with_suffix(".lock")).held():
        if target.exists():
            return
        try:
            with disk_errors(target.parent):
                remove_tree(making)  # a killed run's
                making.mkdir(parents=True)
            with _git_errors(module, f"the history of {scrub_secrets(place)} can't be cloned"):
                module.Repo.clone_from(place, making, bare=True, filter="blob:none")
            with disk_errors(target):
                os.rename(making, target)
        finally:
            remove_tree(making)


@contextlib.contextmanager
def _git_errors(module: Any, what: str) -> Iterator[None]:
    try:
        yield
    except module.GitCommandError as error:
        raise MachineError(f"{what}: {_last_line(error)}") from error


def _last_line(error: Any) -> str:
    lines = [line.strip(" '\"") for line in str(error.stderr or error).splitlines() if line.strip(" '\"")]
    return scrub_secrets(lines[-1]) if lines else type(error).__name__
