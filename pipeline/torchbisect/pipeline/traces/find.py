"""Find the graphs that torch.compile left behind: in traces, debug folders and the minifier's scripts.

A graph has one of two forms. Dynamo's is the readable text of a module, in the event ``dynamo_output_graph`` of a
``TORCH_TRACE`` log and in tlparse's output. The other is a script with a module ``Repro`` and its inputs' shapes: the
artifact ``fx_graph_runnable`` of inductor in the same places, ``fx_graph_runnable.py`` with ``TORCH_COMPILE_DEBUG``,
and ``repro.py`` and ``minifier_launcher.py`` of the minifier.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from torchbisect.core.errors import InputError
from torchbisect.core.regular_file import read_regular_file
from torchbisect.pipeline.traces.dynamo_graph import is_dynamo_graph

#: More graphs are not tried: each takes a run of compiled code.
MOST_GRAPHS = 40
_MOST_BYTES = 2_000_000
_MOST_LOG_BYTES = 256_000_000
_MOST_FILES = 50_000
_NAMES = re.compile(
    r"fx_graph_runnable\w*\.(?:py|txt)|dynamo_output_graph\w*\.txt|repro\w*\.py|minifier_launcher\.py|.*\.log"
)
_EVENTS = ('"dynamo_output_graph"', '"name": "fx_graph_runnable"')
_RELEASE = re.compile(r'^# torch version: ([^\s+]+)|^"pytorch_version": "([^"+]+)', re.MULTILINE)


@dataclass(frozen=True)
class Graph:
    """A graph that the compiler was given.

    Attributes:
        name: the place where it was found.
        text: what torch wrote.
        sizes: the values of the symbols in its shapes.
        grads: the sources of the inputs that require a gradient, such as ``L['x']``.
        torch: the release or nightly of torch that wrote it, without its local version; empty if nothing says so.
    """

    name: str
    text: str
    sizes: Mapping[str, int] = field(default_factory=dict)
    grads: frozenset[str] = frozenset()
    torch: str = ""

    @property
    def is_dynamo(self) -> bool:
        """Whether it is dynamo's own, and not a script of what came out behind AOTAutograd."""
        return is_dynamo_graph(self.text)


def is_graph(text: str) -> bool:
    """Return True for the text of a graph as torch writes it."""
    return is_dynamo_graph(text) or ("def load_args(reader):" in text and "class Repro(" in text)


def find_graphs(place: Path, notify: Callable[[str], None] = lambda text: None) -> list[Graph]:
    """Return the graphs in a file or below a folder, in the order in which they were compiled; none for a script.

    Dynamo's come before the others, which are made from them. The same graph in two places counts once. ``notify`` is
    told of a log that is cut. Raises ``InputError`` for a log or a folder that is too large.
    """
    found: dict[str, Graph] = {}
    for path, name in _files(place):
        with contextlib.suppress(OSError):  # the script's reader says what is wrong with it
            for graph in _graphs_of(path, name, notify):
                found.setdefault(_without_variables(graph.text), graph)
    return sorted(found.values(), key=lambda graph: not graph.is_dynamo)


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


def _graphs_of(path: Path, name: str, notify: Callable[[str], None]) -> Iterator[Graph]:
    if path.suffix == ".log":
        data = read_regular_file(path, _MOST_LOG_BYTES)
        graphs = list(_logged_graphs(data, name))
        if graphs and not data.endswith(b"\n"):
            notify(f"{name} ends in the middle of an entry: what was compiled then is not tried")
        yield from graphs
    elif path.suffix in (".py", ".txt") and os.path.getsize(path) <= _MOST_BYTES:
        text = read_regular_file(path, _MOST_BYTES).decode("utf-8", "replace")
        if is_graph(text):
            yield Graph(name, text, torch=_release(text))


def _release(text: str) -> str:
    found = _RELEASE.search(text)
    return (found[1] or found[2]) if found else ""


def _logged_graphs(data: bytes, name: str) -> Iterator[Graph]:
    """Yield the graphs of a ``TORCH_TRACE`` log: a line of JSON an event, and its payload on lines with a tab."""
    facts = _LoggedFacts()
    payload: list[str] = []
    is_graph_next = False
    number = 0
    for raw in itertools.chain(io.BytesIO(data), [b""]):
        line = raw.decode("utf-8", "replace")
        if line.startswith("\t"):
            payload.append(line[1:])
            continue
        text = "".join(payload)
        payload = []
        facts.torch = facts.torch or _release(text)
        if is_graph_next and is_graph(text):
            number += 1
            yield Graph(f"{name}, graph {number}", text, dict(facts.sizes), frozenset(facts.grads), facts.torch)
        is_graph_next = any(event in line for event in _EVENTS)
        if any(f'"{event}": {{' in line for event in _LoggedFacts.EVENTS):
            with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError, RecursionError):
                facts.read(json.loads(line[line.index("{") :]))


class _LoggedFacts:
    """What a log says of the graphs that come after it."""

    EVENTS = ("create_symbol", "describe_tensor", "describe_source")

    def __init__(self) -> None:
        self.torch = ""
        self.sizes: dict[str, int] = {}
        self.grads: set[str] = set()
        self._require_grad: dict[tuple[object, object], bool] = {}

    def read(self, event: dict[str, dict[str, object]]) -> None:
        """Take an event: a symbol with its value, a tensor, or the source of a tensor."""
        if "create_symbol" in event:
            made = event["create_symbol"]
            self.sizes[str(made["symbol"])] = int(str(made["val"]))
        elif "describe_tensor" in event:
            tensor = event["describe_tensor"]
            self._require_grad[(tensor["describer_id"], tensor["id"])] = tensor.get("requires_grad") is True
        elif "describe_source" in event:
            source = event["describe_source"]
            needs_grad = self._require_grad.get((source["describer_id"], source["id"]), False)
            (self.grads.add if needs_grad else self.grads.discard)(str(source["source"]))
