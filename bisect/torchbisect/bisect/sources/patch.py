"""A patch of PyTorch, from a file, a commit or a pull request, applied to the Python files of an installation.

``git apply`` decides if a patch applies: every line of context must be there, and none is guessed. Where a clone has
the files that the patch was made for, git merges instead, and a conflict is refused. A wheel has only the Python files
of the repository, so changes of tests and documents are left out, and a patch that changes compiled code can't be shown
on a wheel.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import httpx

from torchbisect.bisect.sources.history import SHA, History
from torchbisect.bisect.sources.python_files import is_native, is_replaceable
from torchbisect.containers.process.run_command import Completed, run_command
from torchbisect.core import web
from torchbisect.core.errors import IndexUnreachable, InputError, InstallFailed
from torchbisect.core.printable import one_line
from torchbisect.core.regular_file import read_regular_file
from torchbisect.core.scrub import scrub_secrets

_LARGEST = 20_000_000
#: Seconds for one call of git, on a few files.
_TIMEOUT = 120.0
#: The most folders above the repository's root that a path in a diff may name.
_DEEPEST = 12
#: The folders that hold torch's files, as a path in a diff names them.
_ROOTS = ("site-packages/", "dist-packages/", "pytorch/")
_PULL = re.compile(
    r"(?:https?://github\.com/pytorch/pytorch/pull/|(?:pytorch/pytorch)?#|PR #?)(\d{1,7})/?", re.IGNORECASE
)
_OLD_NAME = re.compile(r"^rename from (.+)$", re.MULTILINE)
_LINK_MODE = re.compile(r"^(?:new file mode|new mode|index \S+) (?:120000|160000)\s*$", re.MULTILINE)


@dataclass(frozen=True)
class Patch:
    """A unified diff against PyTorch's repository.

    Attributes:
        name: what the user typed for it.
        text: the diff.
        files: the paths that it changes, from the repository's root, sorted.
        objects: the folder with a clone's objects, for a merge where the lines around a change differ; else ``None``.
        strip: the number of leading parts of the paths in the diff that lie above the repository's root.
    """

    name: str
    text: str
    files: tuple[str, ...]
    objects: Path | None = None
    strip: int = 1

    @property
    def digest(self) -> str:
        """Forty hexadecimal digits that stand for the text."""
        return hashlib.sha1(self.text.encode("utf-8", "surrogateescape")).hexdigest()

    @property
    def python(self) -> tuple[str, ...]:
        """The changed files that an installation has and that can be replaced without a build."""
        return tuple(path for path in self.files if is_replaceable(path))

    @property
    def native(self) -> tuple[str, ...]:
        """The changed files that show only after a build."""
        return tuple(path for path in self.files if is_native(path))

    @property
    def left_out(self) -> tuple[str, ...]:
        """The changed files that no wheel has: tests, documents."""
        return tuple(path for path in self.files if not is_native(path) and not is_replaceable(path))


def read_patch(name: str, history: Callable[[], History], *, mirrored: bool = False) -> Patch:
    """Read the patch that a user named.

    Args:
        name: a file with a diff; a commit (7 to 40 hexadecimal digits); or a pull request of PyTorch: ``#161036`` or
            its address.
        history: opens the clone that a commit is read from.
        mirrored: that clone is there, so a pull request that was merged into it is read from it too.

    Raises:
        InputError: there is no such thing, or it is no diff.
        MachineError, IndexUnreachable: the clone or GitHub can't be read.
    """
    pull = _PULL.fullmatch(name)
    path = Path(name)
    if path.exists():
        text = read_regular_file(path, _LARGEST).decode("utf-8", "surrogateescape")
    elif pull is not None:
        merged = history().commit_of_pull(int(pull[1])) if mirrored else None
        if merged is not None:
            return replace(commit_patch(history(), merged), name=name)
        text = _fetch(f"https://github.com/pytorch/pytorch/pull/{pull[1]}.diff", name)
    elif SHA.fullmatch(name):
        return commit_patch(history(), name)
    else:
        raise InputError(f"--patch {name}: there is no such file; name a diff, a commit or a pull request (#161036)")
    return _patch_of(name, _with_line_feeds(text))


def commit_patch(history: History, sha: str) -> Patch:
    """Return the change of a commit as a patch.

    Raises:
        InputError: the clone lacks the commit, or its change is none that an installation can take.
        MachineError: git can't read it.
    """
    text = history.diff(sha)
    return replace(_patch_of(sha, text), objects=history.objects)


def apply_patch(patch: Patch, originals: Mapping[str, bytes], *, reverse: bool = False) -> dict[str, bytes | None]:
    """Return the new contents of the Python files that a patch changes; ``None`` for a file that it removes.

    Args:
        originals: the contents of those of ``patch.python`` that the installation has, by path.
        reverse: take the patch back.

    Raises:
        InstallFailed: ``patch-does-not-apply``, with what git says.
        MachineError: git can't be run.
    """
    with tempfile.TemporaryDirectory(prefix="torchbisect-patch-") as folder:
        root = Path(folder, "tree")
        root.mkdir()
        for path, contents in originals.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(contents)
        if patch.objects is not None:
            _make_repository(root, patch.objects)
        words = ["--whitespace=nowarn", f"-p{patch.strip}"]
        words += [f"--include={_as_pattern(path)}" for path in patch.python]
        three_way = ["--3way"] if patch.objects else []
        done = _git_apply([*words, *three_way, *_direction(reverse)], patch.text, root)
        if done.status != 0:
            back = _git_apply([*words, "--check", *_direction(not reverse)], patch.text, root)
            raise _already(reverse) if back.status == 0 else _does_not_apply(done)
        changed = {path: _contents(root / path) for path in patch.python}
    layer = {path: new for path, new in changed.items() if new != originals.get(path)}
    if not layer:
        raise _already(reverse)
    return layer


def apply_to_tree(patch: Patch, tree: Path, *, reverse: bool = False) -> None:
    """Apply a whole patch, or take it back, in a work tree of a clone; the next checkout undoes it.

    Raises:
        InstallFailed: ``patch-does-not-apply``, with what git says.
        MachineError: git can't be run.
    """
    words = ["--whitespace=nowarn", f"-p{patch.strip}", "--3way"]
    done = _git_apply([*words, *_direction(reverse)], patch.text, tree, trusted=True)
    if done.status != 0:
        raise _does_not_apply(done)
    # ``--3way`` writes to the index too.
    if _git(["diff", "--cached", "--quiet"], tree, trusted=True).status == 0:
        raise _already(reverse)


def _direction(reverse: bool) -> list[str]:
    return ["--reverse"] if reverse else []


def _does_not_apply(done: Completed) -> InstallFailed:
    return InstallFailed("patch-does-not-apply", f"it does not apply here: {_reason(done)}")


def _already(reverse: bool) -> InstallFailed:
    there = "lacks what it adds" if reverse else "has what it adds"
    return InstallFailed("patch-does-not-apply", f"it changes nothing here: the build {there} already")


def _with_line_feeds(text: str) -> str:
    """Return a diff that a mail program or an editor has saved with CRLF as git wrote it.

    A diff of files that have CRLF themselves has it in their lines only, and not in its headers.
    """
    lines = text.split("\n")
    headers = [line for line in lines if line.startswith(("--- ", "+++ ", "@@ ", "diff --git "))]
    if not headers or not all(line.endswith("\r") for line in headers):
        return text
    return "\n".join(line.removesuffix("\r") for line in lines)


def _patch_of(name: str, text: str) -> Patch:
    """Return a diff as a patch, with as much stripped from its paths as leaves those of the repository.

    ``git diff --no-prefix`` writes no ``a/`` before them, and a diff of two installations has their folders there.
    """
    above: tuple[str, ...] = ()
    for strip in (1, 0, *range(2, _DEEPEST)):
        files = _files_of(text, name, strip, refuse=False)
        if _is_of_torch(files) and (strip < 2 or _below_a_root(above)):
            return Patch(name, text, files, strip=strip)
        above = files if strip else above
    return Patch(name, text, _files_of(text, name, 1))


def _below_a_root(paths: Sequence[str]) -> bool:
    return bool(paths) and all(path.startswith(_ROOTS) for path in paths)


def _is_of_torch(paths: Sequence[str]) -> bool:
    return any(is_replaceable(path) or is_native(path) for path in paths)


def _files_of(text: str, name: str, strip: int, *, refuse: bool = True) -> tuple[str, ...]:
    """Return the paths that a diff changes, as git reads it.

    Raises ``InputError`` if it is none that can be used; without ``refuse`` it has no paths then.
    """
    if _LINK_MODE.search(text):
        raise InputError(f"--patch {name}: it makes symbolic links or submodules, which no patch of a wheel may")
    with tempfile.TemporaryDirectory(prefix="torchbisect-patch-") as folder:
        root = Path(folder, "tree")
        root.mkdir()
        done = _git_apply(["--numstat", "-z", f"-p{strip}"], text, root)
    if done.status != 0:
        if not refuse:
            return ()
        if "No valid patches" in done.errors:
            raise InputError(f"--patch {name}: there is no diff in it")
        raise InputError(f"--patch {name}: this is no diff that git can read ({_reason(done)})")
    listed = done.output.split("\0")
    files = {line.split("\t", 2)[-1] for line in listed if line}
    # These lines have no ``a/`` before the path.
    files |= {"/".join(path.split("/")[max(strip - 1, 0) :]) for path in _OLD_NAME.findall(text)}
    if not files and refuse:
        raise InputError(f"--patch {name}: it changes nothing")
    return tuple(sorted(files))


def _make_repository(root: Path, objects: Path) -> None:
    """Make a repository of the files in a folder, which finds the contents of a clone."""
    made = _git(["init", "--quiet"], root)
    if made.status == 0:
        (root / ".git" / "objects" / "info" / "alternates").write_text(f"{objects}\n")
        made = _git(["add", "--all", "--force"], root)
    if made.status != 0:
        raise InstallFailed("patch-does-not-apply", f"git can't prepare the files: {_reason(made)}")


def _git_apply(words: Sequence[str], text: str, root: Path, *, trusted: bool = False) -> Completed:
    """Apply a diff, or list what it changes. The diff lies beside the folder, which has nothing but the files."""
    file = root.parent / "patch.diff"
    file.write_bytes(text.encode("utf-8", "surrogateescape"))
    return _git(["apply", *words, str(file)], root, trusted=trusted)


def _git(words: Sequence[str], root: Path, *, trusted: bool = False) -> Completed:
    """Run git in a folder that lies in no other repository, without the user's settings.

    In a work tree of the user's own clone, which is ``trusted``, the user's settings say whose clones git may read.
    """
    if trusted:
        return run_command(
            ["git", *words], environment=dict(os.environ), directory=root, timeout=_TIMEOUT, cap=_LARGEST
        )
    variables = {
        "PATH": os.environ.get("PATH", os.defpath),
        "LC_ALL": "C",
        "HOME": str(root.parent),
        "GIT_CEILING_DIRECTORIES": str(root.parent),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_ATTR_NOSYSTEM": "1",
    }
    return run_command(["git", *words], environment=variables, directory=root, timeout=_TIMEOUT, cap=_LARGEST)


def _contents(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() and not path.is_symlink() else None


def _as_pattern(path: str) -> str:
    """Return a path as a pattern that matches it alone."""
    return re.sub(r"([\\*?\[\]])", r"\\\1", path)


def _reason(done: Completed) -> str:
    """Return the line in which git says why it failed. The first of a merge only says that it can't be one."""
    if done.timed_out:
        return f"git did not end within {_TIMEOUT:.0f} s"
    lines = [line for line in done.errors.splitlines() if line.strip()]
    failed = [line for line in lines if "does not apply" in line or "patch failed" in line or "conflicts" in line]
    shown = (failed or lines or ["git says nothing"])[0]
    return one_line(shown.removeprefix("error: "))


def _fetch(url: str, name: str) -> str:
    try:
        with web.new_client() as client:
            response = web.request(client, "GET", url, limit=_LARGEST)
    except httpx.HTTPError as error:
        raise IndexUnreachable(
            f"--patch {name}: {url} can't be read ({scrub_secrets(str(error)) or type(error).__name__}): "
            "save the diff in a file and name that"
        ) from error
    if response.status_code != 200:
        raise InputError(f"--patch {name}: GitHub answers {response.status_code} for {url}")
    return response.text
