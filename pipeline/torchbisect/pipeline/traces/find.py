"""Find the graphs that torch.compile left behind: in traces, debug folders and the minifier's scripts.

Each is the text of a module ``Repro`` and of its inputs' shapes, in one form that torch writes to several places: the
artifact ``fx_graph_runnable`` of a ``TORCH_TRACE`` log and of tlparse's output, ``fx_graph_runnable.py`` with
``TORCH_COMPILE_DEBUG``, and ``repro.py`` and ``minifier_launcher.py`` of the minifier.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

#: More graphs are not tried: each takes a run of compiled code.
MOST_GRAPHS = 40
_MOST_BYTES = 2_000_000
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

    The same graph in two places counts once.
    """
    found: dict[str, Graph] = {}
    if place.is_dir():
        if not (place / "__main__.py").exists():
            for path in sorted(_files(place), key=_natural):
                for graph in _graphs_of(path, str(path.relative_to(place))):
                    found.setdefault(_without_variables(graph.text), graph)
    elif place.is_file():
        for graph in _graphs_of(place, place.name):
            found.setdefault(_without_variables(graph.text), graph)
    return list(found.values())


def _files(folder: Path) -> Iterator[Path]:
    for root, _, names in os.walk(folder):
        yield from (Path(root, name) for name in names if _NAMES.fullmatch(name))


def _natural(path: Path) -> list[tuple[int, str]]:
    """Return a sort key by which 10 comes after 9."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", str(path))]


def _without_variables(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if not line.startswith("os.environ") and line.strip())


def _graphs_of(path: Path, name: str) -> Iterator[Graph]:
    if path.suffix == ".log":
        yield from _logged_graphs(path, name)
    elif path.suffix in (".py", ".txt") and path.stat().st_size <= _MOST_BYTES:
        text = path.read_text(encoding="utf-8", errors="replace")
        if is_graph(text):
            yield Graph(name, text)


def _logged_graphs(path: Path, name: str) -> Iterator[Graph]:
    """Yield the graphs of a ``TORCH_TRACE`` log: a line of JSON an event, and its payload on lines with a tab."""
    sizes: dict[str, int] = {}
    payload: list[str] | None = None
    number = 0
    with path.open(encoding="utf-8", errors="replace") as file:
        for line in [*file, ""]:
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
    except (ValueError, KeyError, TypeError):
        return {}
