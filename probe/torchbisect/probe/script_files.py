"""The private copy of the files that a script may use: those of its working directory and of its own folder.

It is taken once, before the first run. The user's own files are only read: regular files, and links that stay inside.
A script that looks at no file gets only the modules that it imports and what it names, whatever lies in the folder.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from torchbisect.containers.store.cache import CACHE_TAG
from torchbisect.containers.store.disk import format_bytes
from torchbisect.core.errors import DiskFull, InputError
from torchbisect.core.folders import MOST_DEPTH, walk_folder
from torchbisect.core.repro import Files
from torchbisect.probe.file_mentions import levels_above, looks_at_files, named_parts
from torchbisect.probe.home_files import mentions_home, named_in_home
from torchbisect.probe.module_sources import modules_of_paths, siblings
from torchbisect.probe.private_copy import CopyEntry, copy_entries, relative_name, walk

#: The most bytes and files that are copied, without those of ``--files``.
MOST_BYTES = 512 << 20
MOST_FILES = 4000
#: The file of a copy that holds the data on standard input.
TYPED_INPUT = ".torchbisect-standard-input"
_MOST_SEEN = 40_000
#: Bytes of a path below the folder: it must fit below the folder of a copy too, and systems take 4096 at most.
_LONGEST_PATH = 2000

_SKIPPED = frozenset({"__pycache__", "node_modules"})
_JOURNAL = "journal.jsonl"
# A folder that holds one of these is left out: results of this tool, an environment, a cache.
_NOT_THE_USERS = (_JOURNAL, "pyvenv.cfg", CACHE_TAG)
_RESULTS = frozenset({_JOURNAL, "report.json", "report.md", "report.html", "minimal.py", ".lock"})


@dataclass(frozen=True)
class ScriptPlace:
    """The place where a script is run; all folders are real ones of this machine, without links.

    Attributes:
        cwd: the working directory.
        folder: the folder of the script.
        search: the first entry of ``sys.path``.
        name: the script's file name; the copy leaves that file out, because every run writes its own.
        argv0: as typed: relative to the working directory, or ``-``; empty if it is absolute.
        module: the dotted name of a script that is run as a module; else empty.
        paths: the folders of ``PYTHONPATH``.
        home: the user's home, for a script that may look for files there.
    """

    cwd: Path
    folder: Path
    search: Path
    name: str
    argv0: str = ""
    module: str = ""
    paths: tuple[Path, ...] = ()
    home: Path | None = None

    @property
    def folders(self) -> tuple[Path, ...]:
        """The three folders of the script, each once."""
        return tuple(dict.fromkeys((self.cwd, self.folder, self.search)))


@dataclass
class FileSnapshot:
    """A private copy of files.

    Attributes:
        files: where the copy lies and where the script belongs in it.
        base: the folder of this machine that the copy stands for.
        left_out: one line about the files that are not in it; empty if none is missing.
    """

    files: Files
    base: Path
    left_out: str = ""


@dataclass
class _Found:
    """The entries of the folders, and why some are left out."""

    entries: dict[Path, CopyEntry] = field(default_factory=dict)
    outside: list[Path] = field(default_factory=list)
    unseen: bool = False


def take_snapshot(
    place: ScriptPlace,
    source: str,
    arguments: Sequence[str],
    target: Path,
    *,
    added: Sequence[Path] = (),
    results: Path | None = None,
    typed_input: bytes | None = None,
) -> FileSnapshot:
    """Copy the files that a script may use into an empty folder, and return what was copied.

    Args:
        source: the script's text.
        target: the folder of the copy.
        added: the files and folders of ``--files``.
        results: the folder of this tool's results, which is left out.
        typed_input: the data on standard input, which every run of the script gets.

    Raises:
        InputError: one of ``added`` does not exist or can't be read.
        DiskFull: there is no room.
    """
    modules, used = _modules(place, source)
    texts = (source, *modules.values())
    names, avoided = named_parts(texts, arguments), _avoided(results)
    roots = tuple(dict.fromkeys((*place.folders, *used)))
    if looks := looks_at_files(texts):
        roots = tuple(dict.fromkeys(_widened(root, texts) for root in roots))
    named, home = [_absolute(place.cwd, path) for path in added], place.home if mentions_home(texts) else None
    base = Path(os.path.commonpath([*roots, *(path.parent for path in named), *([home] if home is not None else [])]))
    found = _Found()
    if home is not None:
        _collect_home(found, home, place.cwd, names, avoided)
    for root in roots:
        _collect(found, root, names, avoided, whole=looks and not _is_broad(root))
    if not looks:
        found.outside += _links_outside(place.search, texts)
    for module in modules:
        found.entries[module] = CopyEntry(module, "file", rank=0)
    found.entries.pop(place.folder / place.name, None)
    chosen, missing = _chosen(found, roots)
    chosen += [entry for path in named for entry in _added(path, named)]
    digest = copy_entries(chosen, base, target)
    if typed_input is not None:
        digest = _with_typed_input(digest, typed_input, target)
    typed = "" if typed_input is None else TYPED_INPUT
    files = replace(_files(place, base, target, home), digest=digest, typed_input=typed)
    left_out = [entry for entry in missing if not _is_below(entry.path, named)]
    found.outside[:] = [path for path in found.outside if not _is_below(path, named)]
    return FileSnapshot(files, base, _left_out(found, left_out))


def _is_below(path: Path, named: Sequence[Path]) -> bool:
    """Return true for a file or folder of ``--files``, and for what lies below one."""
    return any(one == path or one in path.parents for one in named)


def _modules(place: ScriptPlace, source: str) -> tuple[dict[Path, str], tuple[Path, ...]]:
    """Return the texts of the modules that a script imports by their paths, and the folders of PYTHONPATH in use."""
    modules = {place.search / name: text for name, text in siblings(source, str(place.search)).items()}
    outer = modules_of_paths(place.paths, (source, *modules.values()))
    used = tuple(path for path in place.paths if any(path in module.parents for module in outer))
    return {**modules, **outer}, used


def _files(place: ScriptPlace, base: Path, target: Path, home: Path | None) -> Files:
    """Return the place of a script in a copy of ``base``."""
    return Files(
        str(target),
        "",
        script=relative_name(base, place.folder),
        search=relative_name(base, place.search),
        cwd=relative_name(base, place.cwd),
        argv0=place.argv0,
        module=place.module,
        paths=tuple(relative_name(base, path) for path in place.paths if path == base or base in path.parents),
        home=None if home is None else relative_name(base, home),
    )


def _collect_home(
    found: _Found, home: Path, cwd: Path, names: frozenset[str], avoided: frozenset[tuple[int, int]]
) -> None:
    """Find what a script names below the user's home."""
    folders, named = named_in_home(home, names, cwd)
    for folder in folders:
        found.entries[folder] = CopyEntry(folder, "folder", rank=0)
    for path in named:
        if path.is_dir():
            found.entries[path] = CopyEntry(path, "folder", rank=0)
            _collect(found, path, names, avoided, whole=True)
        elif path.is_file() and not path.is_symlink():
            found.entries[path] = CopyEntry(path, "file", rank=0, size=path.stat().st_size)


def _with_typed_input(digest: str, typed_input: bytes, target: Path) -> str:
    """Write the data on standard input into a copy, and return the digest of the copy with them."""
    target.mkdir(parents=True, exist_ok=True)
    try:
        (target / TYPED_INPUT).write_bytes(typed_input)
    except OSError as error:
        raise DiskFull(f"{target}: {error.strerror}: the data on standard input can't be written there") from error
    return hashlib.sha256(f"{digest} {hashlib.sha256(typed_input).hexdigest()}".encode("ascii")).hexdigest()


def named_files(source: str, folder: str) -> list[str]:
    """Return the files of a copy that a script names, by their path in it."""
    names = named_parts((source,), ())
    return [
        name
        for path, name in walk(Path(folder))
        if stat.S_ISREG(os.lstat(path).st_mode) and path.name in names and not name.endswith((".py", TYPED_INPUT))
    ]


def _links_outside(folder: Path, texts: Sequence[str]) -> list[Path]:
    """Return the links of a folder that lead outside and whose name occurs in a text: modules that will be missing."""
    try:
        links = [entry for entry in os.scandir(folder) if entry.is_symlink()]
    except OSError:
        return []
    return [
        Path(link.path)
        for link in links
        if folder not in Path(os.path.realpath(link.path)).parents
        and any(re.search(rf"\b{re.escape(PurePosixPath(link.name).stem)}\b", text) for text in texts)
    ]


def _widened(root: Path, texts: Sequence[str]) -> Path:
    """Return a folder, or one above it if a script names it, but never one that holds a user's whole life."""
    for _ in range(min(levels_above(texts), 4)):
        if _is_broad(root.parent) or _is_broad(root):
            break
        root = root.parent
    return root


def _is_broad(folder: Path) -> bool:
    """Return True for the home folder, the temporary folder, and every folder above one of them."""
    for known in (Path.home(), Path(tempfile.gettempdir()), Path("/tmp"), Path("/var/tmp")):
        real = Path(os.path.realpath(known))
        if folder == real or folder in real.parents:
            return True
    return False


def _avoided(results: Path | None) -> frozenset[tuple[int, int]]:
    """Return the device and inode of what belongs to this run: its results, and files that its output goes to."""
    found = set()
    for file in (results, 1, 2):
        try:
            status = os.stat(file) if file is not None else None
        except OSError:
            continue
        if status is not None and (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
            found.add((status.st_dev, status.st_ino))
    return frozenset(found)


def _collect(
    found: _Found, root: Path, names: frozenset[str], avoided: frozenset[tuple[int, int]], *, whole: bool
) -> None:
    """Find what lies below a folder, what lies near first; of one that is not taken ``whole`` what the script names."""
    pending, seen = [(root, whole)], 0
    for folder, whole_folder in pending:
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in entries:
            seen += 1
            if seen > _MOST_SEEN:
                found.unseen = True
                return
            is_named = entry.name in names or PurePosixPath(entry.name).stem in names
            if not is_named and (entry.name.startswith(".") or entry.name in _SKIPPED or not whole_folder):
                continue
            path, rank = Path(entry.path), 0 if is_named else 1
            try:
                status = os.lstat(path)
            except OSError:  # removed meanwhile, or a path longer than the system takes
                continue
            too_deep = len(path.parts) - len(root.parts) > MOST_DEPTH
            if too_deep or len(os.fsencode(path)) - len(os.fsencode(root)) > _LONGEST_PATH:
                found.unseen = True
                continue
            if (status.st_dev, status.st_ino) in avoided or path in found.entries:
                continue
            if entry.name in _RESULTS and any(other.name == _JOURNAL for other in entries):
                continue
            if stat.S_ISDIR(status.st_mode):
                if not any(os.path.exists(path / mark) for mark in _NOT_THE_USERS):
                    found.entries[path] = CopyEntry(path, "folder", rank)
                    pending.append((path, True))
            elif stat.S_ISREG(status.st_mode):
                found.entries[path] = CopyEntry(path, "file", rank, status.st_size)
            elif stat.S_ISLNK(status.st_mode):
                found.entries[path] = CopyEntry(path, "link", rank)


def _chosen(found: _Found, roots: Sequence[Path]) -> tuple[list[CopyEntry], list[CopyEntry]]:
    """Return what is copied, within the limits, and what is not; what the script names comes first."""
    room = MOST_BYTES
    chosen: list[CopyEntry] = []
    missing: list[CopyEntry] = []
    for entry in sorted(found.entries.values(), key=lambda entry: (entry.rank, len(entry.path.parts))):
        if entry.kind != "link":
            if len(chosen) < MOST_FILES and entry.size <= room:
                room -= entry.size
                chosen.append(entry)
            else:
                missing.append(entry)
    there = {*roots, *(entry.path for entry in chosen)}
    for entry in found.entries.values():
        if entry.kind == "link":
            if Path(os.path.realpath(entry.path)) in there:
                chosen.append(entry)
            elif os.path.exists(entry.path):
                found.outside.append(entry.path)
    return chosen, missing


def _absolute(cwd: Path, path: Path) -> Path:
    """Return where a file of ``--files`` lies, with the links above it resolved. Raises ``InputError``."""
    whole = Path(os.path.normpath(cwd / path))
    if not os.path.exists(whole):
        raise InputError(f"--files {path}: there is no such file or folder")
    return Path(os.path.realpath(whole.parent)) / whole.name


def _added(path: Path, named: Sequence[Path]) -> list[CopyEntry]:
    """Return everything below a file or folder of ``--files``, which may be a link."""
    if path.is_file():
        return [CopyEntry(path, "added")]
    if not path.is_dir():
        raise InputError(f"--files {path}: this is neither a file nor a folder")
    entries = [CopyEntry(path, "folder")]
    for folder, folders, files in walk_folder(path):
        entries += [CopyEntry(Path(folder, name), "folder") for name in folders if not Path(folder, name).is_symlink()]
        whole = [Path(folder, name) for name in files]
        entries += [CopyEntry(one, "added") for one in whole if stat.S_ISREG(os.lstat(one).st_mode)]
    return entries


def _left_out(found: _Found, missing: Sequence[CopyEntry]) -> str:
    """Return one line about what the script will not find; empty if it finds everything."""
    parts = []
    files = [entry for entry in missing if entry.kind == "file"]
    if files:
        size = format_bytes(sum(entry.size for entry in files))
        limit = f"{format_bytes(MOST_BYTES)} and {MOST_FILES} files"
        parts.append(f"{len(files)} files ({size}, {files[0].path.name} the first) beyond {limit}")
    elif missing or found.unseen:
        parts.append(f"what lies beyond {MOST_FILES} files, or too deep")
    if found.outside:
        names = dict.fromkeys(path.name for path in found.outside)
        parts.append(", ".join([*names][:3]) + " (a link that leads outside)")
    if not parts:
        return ""
    return f"the script does not get all files of its folder: {'; '.join(parts)}; name what it needs with --files PATH"
