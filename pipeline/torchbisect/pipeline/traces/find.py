"""Find the graphs that torch.compile left behind: in traces, debug folders and the minifier's scripts.

Each is the text of a module ``Repro`` and of its inputs' shapes, in one form that torch writes to several places: the
artifact ``fx_graph_runnable`` of a ``TORCH_TRACE`` log and of tlparse's output, ``fx_graph_runnable.py`` with
``TORCH_COMPILE_DEBUG``, and ``repro.py`` and ``minifier_launcher.py`` of the minifier.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from torchbisect.core.errors import InputError
from torchbisect.core.regular_file import read_regular_file

#: More graphs are not tried: each takes a run of compiled code.
MOST_GRAPHS = 40
_MOST_BYTES = 2_000_000
_MOST_LOG_BYTES = 256_000_000
_MOST_FILES = 50_000
_NAMES = re.compile(r"fx_graph_runnable\w*\.(?:py|txt)|repro\w*\.py|minifier_launcher\.py|.*\.log")
_ARTIFACT = "fx_graph_runnable"


@dataclass(frozen=True)
class Graph:
    """A graph that the compiler was given.

    Attributes:
        name: the place where it was found.
        text: the script that torch wrote.
        sizes: the values of the symbols in its shapes.
    """

    name: str
    text: str
    sizes: Mapping[str, int] = field(default_factory=dict)

    @property
    def torch(self) -> str | None:
        """The release or nightly of torch that wrote it, without its local version."""
        found = re.search(r"^# torch version: ([^\s+]+)", self.text, re.MULTILINE)
        return found.group(1) if found else None


def is_graph(text: str) -> bool:
    """Return True for the text of a graph as torch writes it."""
    return "def load_args(reader):" in text and "class Repro(" in text


def find_graphs(place: Path) -> list[Graph]:
    """Return the graphs in a file or below a folder, in the order in which they were compiled; none for a script.

    The same graph in two places counts once. Raises ``InputError`` for a log or a folder that is too large.
    """
    found: dict[str, Graph] = {}
    for path, name in _files(place):
        with contextlib.suppress(OSError):  # the script's reader says what is wrong with it
            for graph in _graphs_of(path, name):
                found.setdefault(_without_variables(graph.text), graph)
    return list(found.values())


def _files(place: Path) -> list[tuple[Path, str]]:
    """Return the regular files that may hold graphs, each with its name for people."""
    if not os.path.isdir(place):
        return [(place, place.name)] if os.path.isfile(place) else []
    if os.path.lexists(place / "__main__.py"):
        return []
    found, seen = [], 0
    for root, _, names in os.walk(place):
        seen += len(names)
        if seen > _MOST_FILES:
            raise InputError(f"{place} has more than {_MOST_FILES} files: name a script, or the folder of one trace")
        found += [Path(root, name) for name in names if _NAMES.fullmatch(name)]
    regular = [path for path in found if os.path.isfile(path)]
    return [(path, str(path.relative_to(place))) for path in sorted(regular, key=_natural)]


def _natural(path: Path) -> list[tuple[int, str]]:
    """Return a sort key by which 10 comes after 9."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", str(path))]


def _without_variables(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if not line.startswith("os.environ") and line.strip())


def _graphs_of(path: Path, name: str) -> Iterator[Graph]:
    if path.suffix == ".log":
        yield from _logged_graphs(read_regular_file(path, _MOST_LOG_BYTES), name)
    elif path.suffix in (".py", ".txt") and os.path.getsize(path) <= _MOST_BYTES:
        text = read_regular_file(path, _MOST_BYTES).decode("utf-8", "replace")
        if is_graph(text):
            yield Graph(name, text)


def _logged_graphs(data: bytes, name: str) -> Iterator[Graph]:
    """Yield the graphs of a ``TORCH_TRACE`` log: a line of JSON an event, and its payload on lines with a tab."""
    sizes: dict[str, int] = {}
    payload: list[str] | None = None
    number = 0
    for raw in itertools.chain(io.BytesIO(data), [b""]):
        line = raw.decode("utf-8", "replace")
        if line.startswith("\t"):
            if payload is not None:
                payload.append(line[1:])
            continue
        if payload is not None and is_graph("".join(payload)):
            number += 1
            yield Graph(f"{name}, graph {number}", "".join(payload), dict(sizes))
        payload = [] if f'"name": "{_ARTIFACT}"' in line else None
        if '"create_symbol"' in line:
            sizes.update(_symbol(line))


def _symbol(line: str) -> dict[str, int]:
    try:
        made = json.loads(line[line.index("{") :])["create_symbol"]
        return {made["symbol"]: int(made["val"])}
    except (ValueError, KeyError, TypeError, RecursionError):
        return {}
