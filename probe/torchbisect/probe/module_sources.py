"""The source text of modules: those that lie beside a script, and those of the libraries in an environment."""

from __future__ import annotations

import ast
import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from types import TracebackType

from torchbisect.containers.environment import Environment, Process
from torchbisect.containers.process.processes import LineTooLong
from torchbisect.core.decode import DecodeError, decode, read_json
from torchbisect.core.python_text import parse_or_none
from torchbisect.core.repro import Repro
from torchbisect.probe.inside import open_inside

_MOST_FILES = 500
_MOST_BYTES = 5_000_000


def repro_identity(repro: Repro) -> tuple[str, tuple[str, ...], int, str, str, tuple[str, ...]]:
    """Return everything that decides how a script runs, for journal keys: texts and files, not where they lie."""
    files = () if repro.files is None else repro.files.identity
    modules = siblings_digest(repro.source, repro.directory)
    return repro.source, repro.arguments, repro.seed, repro.name, modules, files


def siblings(source: str, directory: str | None) -> dict[str, str]:
    """Return the modules under a script's folder that it imports, directly or not, by their relative path.

    A link that leads out of the folder, a FIFO or a device is no module.
    """
    if directory is None:
        return {}
    root = Path(os.path.realpath(directory))
    found: dict[Path, str] = {}
    pending = list(_files(source, root, root))
    while pending and len(found) < _MOST_FILES:
        path = pending.pop()
        if path in found:
            continue
        try:
            stat = path.stat()
            text = _text(root, path, stat.st_mtime_ns, stat.st_size)
        except OSError:
            continue
        found[path] = text
        pending.extend(_files(text, root, path.parent))
    return {str(path.relative_to(root)): text for path, text in sorted(found.items())}


def modules_of_paths(paths: Sequence[Path], texts: Sequence[str]) -> dict[Path, str]:
    """Return the modules in these folders that texts import, directly or not, with their texts."""
    found: dict[Path, str] = {}
    pending = list(texts)
    while pending:
        text = pending.pop()
        for path in paths:
            for name, module in siblings(text, str(path)).items():
                if path / name not in found:
                    found[path / name] = module
                    pending.append(module)
    return found


def module_source(directory: str, name: str) -> tuple[str, bool] | None:
    """Return the text of a module under a script's folder, by its dotted name, and True if it is a package."""
    root = Path(os.path.realpath(directory))
    place = Path(root, *name.split("."))
    for path, package in ((place / "__init__.py", True), (place.with_name(place.name + ".py"), False)):
        try:
            return _text(root, path, path.stat().st_mtime_ns, path.stat().st_size), package
        except (OSError, ValueError):
            continue
    return ("", True) if os.path.isdir(place) and any(place.glob("*.py")) else None


def write_siblings(repro: Repro, folder: Path) -> None:
    """Write the modules that a script imports into the folder of a copy of it."""
    for place, text in siblings(repro.source, repro.directory).items():
        path = folder / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", errors="surrogatepass")


def siblings_digest(source: str, directory: str | None) -> str:
    """Return a hexadecimal digest of these modules; empty if there are none."""
    found = siblings(source, directory)
    if not found:
        return ""
    lines = [
        f"{path} {hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()}" for path, text in found.items()
    ]
    return hashlib.sha256("\n".join(lines).encode("utf-8", "surrogatepass")).hexdigest()[:24]


@lru_cache(maxsize=512)
def _text(root: Path, path: Path, changed: int, size: int) -> str:
    """Return the text of a file; its time and size are parameters so that a changed file is read again.

    Raises ``OSError`` if it is not a regular file below ``root``, or too large for a module.
    """
    with open_inside(root, path) as file:
        data = file.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise OSError(f"{path} is too large for a module")
    return data.decode("utf-8", "replace").replace("\r\n", "\n")


@lru_cache(maxsize=1024)
def _imports(source: str) -> tuple[tuple[int, str], ...]:
    """Return the imports of a text, as the number of leading dots and the dotted name."""
    tree = parse_or_none(source)
    if tree is None:
        return ()
    names: list[tuple[int, str]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [(0, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            names.append((node.level, module))
            names += [(node.level, f"{module}.{alias.name}".strip(".")) for alias in node.names]
    return tuple(dict.fromkeys(names))


def _files(source: str, root: Path, here: Path) -> Iterator[Path]:
    for level, name in _imports(source):
        base = here if level else root
        for _ in range(level - 1):
            base = base.parent
        if base != root and root not in base.parents:
            continue
        parts = [part for part in name.split(".") if part]
        for end in range(len(parts) + 1):
            package = base.joinpath(*parts[:end])
            candidates = [package / "__init__.py"] if end == 0 and level else []
            if end:
                candidates = [package.with_suffix(".py"), package / "__init__.py"]
            yield from (path for path in candidates if os.path.isfile(path))


# Of Python 3.8 and up. What torch itself stands on stays an import: a repro of torch may use it.
_SERVER = r"""
import importlib.machinery, json, os, sys, sysconfig
STAY = {"torch", "torchgen", "functorch", "triton", "numpy"}
STANDARD = os.path.realpath(sysconfig.get_paths()["stdlib"])
def place_of(name):
    first, *rest = name.split(".")
    spec = importlib.machinery.PathFinder.find_spec(first)
    if first in STAY or spec is None:
        return None
    folders = list(spec.submodule_search_locations or ())
    place = os.path.realpath(folders[0] if folders else spec.origin or STANDARD)
    if place.startswith(STANDARD) and "-packages" not in place:
        return None
    for part in rest:
        if not folders:
            return None
        place = os.path.join(folders[0], part)
        folders = [place] if os.path.isdir(place) else []
        place = place if folders else place + ".py"
    return os.path.join(place, "__init__.py") if folders else place
for line in sys.stdin:
    name, told = json.loads(line), None
    try:
        place = place_of(name)
        if place and place.endswith(".py"):
            package = os.path.basename(place) == "__init__.py"
            if package and not os.path.exists(place):
                told = ["", True]
            else:
                with open(place, encoding="utf-8") as file:
                    told = [file.read(), package]
    except (OSError, ValueError, ImportError):
        pass
    print(json.dumps(told), flush=True)
"""
_ANSWER_SECONDS = 30.0


class Library:
    """The source text of what is installed in an environment beside torch."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._process: Process | None = None

    def __enter__(self) -> Library:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, frames: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._process.kill()

    def source(self, name: str) -> tuple[str, bool] | None:
        """Return a module's source, and True for a package; ``None`` outside libraries, for torch and for numpy."""
        if self._process is None:
            self._process = self._environment.start(["-c", _SERVER])
        try:
            self._process.send(json.dumps(name).encode() + b"\n")
            told = read_json(self._process.read_line(_ANSWER_SECONDS) or b"null")
            return None if told is None else decode(tuple[str, bool], told, "answer")
        except (BrokenPipeError, DecodeError, LineTooLong):
            return None
