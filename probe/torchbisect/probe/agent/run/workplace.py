"""The folder that a script runs in: a working copy of its files, at one path, put back in order before each run.

Every run of an agent finds the same files under the same path: ``__file__`` and the working directory do not tell an
eager run from a compiled one. What a run has written, changed or removed there is undone before the next.

The files come from strangers, and scripts may leave anything behind. So no link is followed here.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
import stat
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

from .cleaning import remove

MOST_KEPT = 4
_COPY_BYTES = 1 << 20
_BLOCK = 4096
_States = Dict[str, Optional[Tuple[Any, ...]]]


class Place(NamedTuple):
    """The paths of one run.

    Attributes:
        script: the file with the script's text.
        cwd: the working directory.
        search: the first entry of ``sys.path``.
        argv0: ``sys.argv[0]``.
        module: the dotted name of the script where it is run as a module; else empty.
        folders: the folders of user code, the innermost first.
        typed_input: the file that is standard input; empty for none.
        paths: the folders of ``PYTHONPATH``.
        variables: variables of the environment; the home is one of them where the script looks for files there.
    """

    script: str
    cwd: str
    search: str
    argv0: str
    module: str
    folders: List[str]
    typed_input: str = ""
    paths: Tuple[str, ...] = ()
    variables: Tuple[Tuple[str, str], ...] = ()


class Workplaces:
    """The working copies of an agent, by the key of their files; the least recently used are removed."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._kept: Dict[str, _WorkingCopy] = {}
        self._originals: Dict[str, _States] = {}
        self._made = 0

    def receive(self, key: str, items: List[Dict[str, Any]]) -> None:
        """Write files that came over the protocol, for the working copy of this key."""
        root = self._received(key)
        os.makedirs(root, exist_ok=True)
        for item in items:
            path = os.path.join(root, item["path"])
            if item["kind"] == "folder":
                os.makedirs(path, exist_ok=True)
            elif item["kind"] == "link":
                os.symlink(item["target"], path)
            else:
                with open(path, "ab") as file:
                    file.write(base64.b64decode(item["data"]))
                os.chmod(path, item["mode"])

    def prepare(self, repro: Dict[str, Any]) -> Place:
        """Put the files of a script in order, write its text among them, and return the paths of its run."""
        files = repro.get("files") or {}
        modules = {} if files else repro.get("siblings") or {}
        key = files.get("key") or _digest(modules)
        source = "" if not files.get("key") else files.get("folder") or self._received(key)
        typed_input = files.get("typed_input", "")
        copy = self._kept.pop(key, None)
        if copy is None:
            self._made += 1
            root = os.path.join(self._folder, "work{}".format(self._made))
            originals = self._originals.setdefault(source, {})
            copy = _WorkingCopy(root, source, modules, originals, left_out=typed_input)
        self._kept[key] = copy
        while len(self._kept) > MOST_KEPT:
            self._kept.pop(next(iter(self._kept))).remove()
        name = os.path.basename(repro.get("name") or "repro.py")
        copy.restore(os.path.normpath(os.path.join(files.get("script", ""), name)))
        place = _place(copy.root, name, repro, files)
        return place._replace(typed_input=os.path.join(source, typed_input)) if typed_input else place

    def size(self) -> Tuple[int, int]:
        """Return the number and the size of the files that the working copies begin with."""
        sizes = [copy.size for copy in self._kept.values()]
        return sum(one[0] for one in sizes), sum(one[1] for one in sizes)

    def _received(self, key: str) -> str:
        return os.path.join(self._folder, "files", key)


def _digest(modules: Dict[str, str]) -> str:
    return hashlib.sha256(json.dumps(modules, sort_keys=True).encode("ascii")).hexdigest()


def _place(root: str, name: str, repro: Dict[str, Any], files: Dict[str, Any]) -> Place:
    home, search, cwd = (
        os.path.normpath(os.path.join(root, files.get(part, ""))) for part in ("script", "search", "cwd")
    )
    for folder in (home, search, cwd):
        os.makedirs(folder, exist_ok=True)
    path = os.path.join(home, name)
    write_text(path, repro["source"])
    folders = list(dict.fromkeys((home, search, cwd, root)))
    paths = tuple(os.path.normpath(os.path.join(root, part)) for part in files.get("paths", ()))
    variables = dict(files.get("variables", ()))
    if files.get("home") is not None:
        variables["HOME"] = os.path.normpath(os.path.join(root, files["home"]))
        os.makedirs(variables["HOME"], exist_ok=True)
    place = Place(path, cwd, search, files.get("argv0") or path, files.get("module", ""), folders)
    return place._replace(paths=paths, variables=tuple(variables.items()))


def write_text(path: str, text: str) -> None:
    """Write a file in place of whatever has its path, never through a link."""
    with os.fdopen(_open_new(path), "w", encoding="utf-8", errors="surrogatepass") as file:
        file.write(text)
        os.fchmod(file.fileno(), 0o644)


def _open_new(path: str) -> int:
    """Return a descriptor of an empty file. One that is there already stays where it is in the list of its folder."""
    kind = _kind(path)
    if kind and stat.S_ISREG(kind.st_mode) and kind.st_nlink == 1:
        os.chmod(path, 0o600)
        return os.open(path, os.O_WRONLY | os.O_TRUNC | os.O_NOFOLLOW)
    remove(path)
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644)


def _kind(path: str) -> Optional[os.stat_result]:
    try:
        return os.lstat(path)
    except OSError:
        return None


class _WorkingCopy:
    """A copy of a folder that can be put back as it was.

    Args:
        root: the copy.
        source: the folder that is copied; empty for none.
        modules: the text of further files by their relative path.
        originals: the states of the files of ``source`` before any run, which is filled here.
        left_out: the relative path of a file that is not copied.
    """

    def __init__(self, root: str, source: str, modules: Dict[str, str], originals: _States, left_out: str = "") -> None:
        self.root = root
        self._source = source
        self._modules = modules
        self._left_out = left_out
        self._known: Dict[str, Tuple[Any, ...]] = {}
        self._wanted = dict.fromkeys(originals) if originals else self._list_wanted()
        self._originals = originals
        for name in self._wanted if source else ():
            originals.setdefault(name, _state(os.path.join(source, name)))

    @property
    def size(self) -> Tuple[int, int]:
        """The number and the size of its files and folders as they were made; each takes whole blocks of the disk."""
        sizes = [_BLOCK + (state[2] if len(state) > 2 else 0) for state in self._known.values()]
        return len(sizes), sum(sizes)

    def restore(self, script: str) -> None:
        """Remove what does not belong here, and rewrite what was changed; ``script`` stays.

        Where something is missing all is made anew: on some filesystems a folder lists its files in the order in
        which they were made, and the order is something that a script sees.
        """
        kind = _kind(self.root)
        if kind is None or not stat.S_ISDIR(kind.st_mode) or kind.st_mode & 0o777 != 0o700 or not self._restore(script):
            remove(self.root)
            os.mkdir(self.root, 0o700)
            for name in self._wanted:
                self._make(name)

    def _restore(self, script: str) -> bool:
        """Return False if something is missing, or is not what it was."""
        there = set()
        for path, name in _walk(self.root, self._wanted):
            if name in self._wanted and name != script:
                found, known = _state(path), self._known.get(name)
                if found is None or known is None or found[:2] != known[:2]:
                    return False
                if found != known:
                    if not stat.S_ISREG(found[0]):
                        return False
                    self._make(name)
                there.add(name)
            elif name != script and not _leads_to(name, script, path):
                remove(path)
        return all(name in there or name == script for name in self._wanted)

    def remove(self) -> None:
        """Remove the copy."""
        remove(self.root)

    def _list_wanted(self) -> Dict[str, None]:
        """Return the relative paths of the files in order, each after the folder that it lies in."""
        wanted = [name for _, name in _walk(self._source) if name != self._left_out] if self._source else []
        for name in self._modules:
            parts = name.split("/")
            wanted += ["/".join(parts[:end]) for end in range(1, len(parts) + 1)]
        return dict.fromkeys(wanted)

    def _make(self, name: str) -> None:
        path, source = os.path.join(self.root, name), os.path.join(self._source, name)
        if name in self._modules:
            write_text(path, self._modules[name])
        elif self._source and _state(source) != self._originals[name]:
            raise ValueError("a run has changed the original of {!r}".format(name))
        elif not self._source or stat.S_ISDIR(os.lstat(source).st_mode):
            os.mkdir(path, 0o755)
        elif os.path.islink(source):
            os.symlink(os.readlink(source), path)
        else:
            status = os.lstat(source)
            with open(source, "rb") as original, os.fdopen(_open_new(path), "wb") as copy:
                shutil.copyfileobj(original, copy, _COPY_BYTES)
            os.chmod(path, 0o755 if status.st_mode & 0o100 else 0o644)
            os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
        self._known[name] = _state(path)  # type: ignore[assignment]


def _walk(root: str, below: Any = None) -> Iterator[Tuple[str, str]]:
    """Yield the path and the relative name of everything under a folder; a folder comes before what is in it.

    With ``below``, only folders whose name is in it are entered. A folder that the caller removes is not entered.
    """
    pending = [""]
    while pending:
        folder = pending.pop()
        try:
            entries = sorted(os.scandir(os.path.join(root, folder)), key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in entries:
            name = folder + entry.name
            is_folder = entry.is_dir(follow_symlinks=False)
            yield entry.path, name
            if is_folder and (below is None or name in below):
                pending.append(name + "/")


def _leads_to(name: str, script: str, path: str) -> bool:
    """Return True for a folder on the way to the script."""
    return script.startswith(name + "/") and not os.path.islink(path) and os.path.isdir(path)


def _state(path: str) -> Optional[Tuple[Any, ...]]:
    """Return what changes when a file is written to, replaced or gets other rights; ``None`` if there is none."""
    found = _kind(path)
    if found is None:
        return None
    if stat.S_ISDIR(found.st_mode):
        return found.st_mode, found.st_ino
    return found.st_mode, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
