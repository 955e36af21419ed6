"""A patch of PyTorch, from a file, a commit or a pull request, applied to the Python files of an installation.

``git apply`` decides if a patch applies: every line of context must be there, and none is guessed. A wheel has only the
Python files of the repository, so changes of tests and documents are left out, and a patch that changes compiled code
can't be shown on a wheel.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import httpx

from torchbisect.bisect.sources.history import SHA, History
from torchbisect.bisect.sources.python_files import is_native, is_replaceable
from torchbisect.core import web
from torchbisect.core.errors import IndexUnreachable, InputError, InstallFailed, MachineError
from torchbisect.core.printable import one_line
from torchbisect.core.regular_file import read_regular_file
from torchbisect.core.scrub import scrub_secrets

_LARGEST = 20_000_000
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
    """

    name: str
    text: str
    files: tuple[str, ...]

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


def read_patch(name: str, history: Callable[[], History]) -> Patch:
    """Read the patch that a user named.

    Args:
        name: a file with a diff; a commit (7 to 40 hexadecimal digits); or a pull request of PyTorch: ``#161036`` or
            its address.
        history: opens the clone that a commit is read from.

    Raises:
        InputError: there is no such thing, or it is no diff.
        MachineError, IndexUnreachable: the clone or GitHub can't be read.
    """
    pull = _PULL.fullmatch(name)
    path = Path(name)
    if path.exists():
        text = read_regular_file(path, _LARGEST).decode("utf-8", "surrogateescape")
    elif pull is not None:
        text = _fetch(f"https://github.com/pytorch/pytorch/pull/{pull[1]}.diff", name)
    elif SHA.fullmatch(name):
        text = history().diff(name)
    else:
        raise InputError(f"--patch {name}: there is no such file; name a diff, a commit or a pull request (#161036)")
    return Patch(name, text, _files_of(text, name))


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
        root = Path(folder)
        for path, contents in originals.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(contents)
        words = ["apply", "--whitespace=nowarn", *(["--reverse"] if reverse else [])]
        words += [f"--include={_as_pattern(path)}" for path in patch.python]
        done = _git(words, patch.text, root)
        if done.returncode:
            raise InstallFailed(
                "patch-does-not-apply", f"{patch.name} does not apply here: {_first_error(done.stderr)}"
            )
        changed = {path: _contents(root / path) for path in patch.python}
    return {path: new for path, new in changed.items() if new != originals.get(path)}


def _files_of(text: str, name: str) -> tuple[str, ...]:
    """Return the paths that a diff changes, as git reads it. Raises ``InputError`` if it is none that can be used."""
    if _LINK_MODE.search(text):
        raise InputError(f"--patch {name}: it makes symbolic links or submodules, which no patch of a wheel may")
    with tempfile.TemporaryDirectory(prefix="torchbisect-patch-") as folder:
        done = _git(["apply", "--numstat", "-z"], text, Path(folder))
    if done.returncode:
        raise InputError(f"--patch {name}: this is no diff that git can read ({_first_error(done.stderr)})")
    listed = done.stdout.decode("utf-8", "surrogateescape").split("\0")
    files = {line.split("\t", 2)[-1] for line in listed if line} | set(_OLD_NAME.findall(text))
    if not files:
        raise InputError(f"--patch {name}: it changes nothing")
    return tuple(sorted(files))


def _git(words: list[str], text: str, folder: Path) -> subprocess.CompletedProcess[bytes]:
    """Run git in a folder that belongs to no repository, without the user's settings."""
    variables = {
        "PATH": os.environ.get("PATH", os.defpath),
        "LC_ALL": "C",
        "GIT_CEILING_DIRECTORIES": str(folder.parent),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
    }
    data = text.encode("utf-8", "surrogateescape")
    try:
        return subprocess.run(["git", *words], input=data, cwd=folder, env=variables, capture_output=True)
    except OSError as error:
        raise MachineError(f"git can't be run ({error.strerror}): install it") from error


def _contents(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() and not path.is_symlink() else None


def _as_pattern(path: str) -> str:
    """Return a path as a pattern that matches it alone."""
    return re.sub(r"([\\*?\[\]])", r"\\\1", path)


def _first_error(text: bytes) -> str:
    lines = [line for line in text.decode("utf-8", "replace").splitlines() if line.strip()]
    return one_line(lines[0].removeprefix("error: ")) if lines else "git says nothing"


def _fetch(url: str, name: str) -> str:
    try:
        with web.new_client({}) as client:
            response = web.request(client, "GET", url, limit=_LARGEST)
    except httpx.HTTPError as error:
        raise IndexUnreachable(
            f"--patch {name}: {url} can't be read ({scrub_secrets(str(error)) or type(error).__name__}): "
            "save the diff in a file and name that"
        ) from error
    if response.status_code != 200:
        raise InputError(f"--patch {name}: GitHub answers {response.status_code} for {url}")
    return response.text
