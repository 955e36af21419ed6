"""Asks an agent on every pair of a Python and a torch whether it tells a wrong script from a right one; prints a table.

    python benchmarks/matrix.py --python PATH [--python PATH ...] [--all] [--journal FILE] [--cache-dir DIR]
        [--cache-limit SIZE] > TABLE.md

With the first Python every minor release that the registry has a wheel for is asked, with the others the oldest and
the newest one only, unless ``--all``. Each is asked four things: a right and a wrong script through dynamo, and the
same through inductor. In the table ``yes`` means that all four answers were right.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import platformdirs
from packaging.version import Version

from torchbisect.bisect.sources.listing import Listing
from torchbisect.bisect.sources.release import releases
from torchbisect.containers.index.indexes import Indexes
from torchbisect.containers.index.pages import packages
from torchbisect.containers.python.interpreter import Interpreter
from torchbisect.containers.store.cache import Cache
from torchbisect.containers.store.disk import parse_size
from torchbisect.containers.venv.environments import VenvEnvironments
from torchbisect.core.build import Build
from torchbisect.core.errors import TorchbisectError
from torchbisect.core.repro import Repro
from torchbisect.core.verdict import MismatchKind
from torchbisect.probe.journal import Journal
from torchbisect.probe.limits import Limits
from torchbisect.probe.probe import Probe
from torchbisect.probe.probe_options import ProbeOptions

# What a script's own backend gets wrong is wrong on every torch.
_WRONG = """\
import torch
def bad(graph, inputs):
    return lambda *values: tuple(2 * value for value in graph(*values))
torch.compile(lambda x: x.sin() + 1, backend=bad)(torch.ones(4))
"""
_RIGHT = 'import torch\ntorch.compile(lambda x: x.sin() + 1, backend="eager")(torch.ones(4))\n'
_INDUCTOR = "import torch\ntorch.compile(lambda x: x.sin() + 1)(torch.ones(4)){}\n"
_BREAKS = "\nassert not torch._dynamo.utils.counters['stats']['unique_graphs']"
_ASKED = (
    ("right", _RIGHT, None),
    ("wrong", _WRONG, MismatchKind.VALUES),
    ("right through inductor", _INDUCTOR.format(""), None),
    ("wrong through inductor", _INDUCTOR.format(_BREAKS), MismatchKind.RAISES),
)
_PATIENT = Limits(eager=120.0, compiled_floor=240.0)


@dataclass(frozen=True)
class Row:
    """The answer of one Python about one release: ``yes``, or why not."""

    python: str
    torch: Version
    said: str


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--python", type=Path, action="append", required=True)
    parser.add_argument("--all", action="store_true", help="every minor release with every Python")
    parser.add_argument("--journal", type=Path)
    parser.add_argument("--cache-dir", type=Path, default=Path(platformdirs.user_cache_dir("torchbisect")))
    parser.add_argument("--cache-limit", type=parse_size, help="as the command's own")
    options = parser.parse_args(arguments)
    cache = Cache(options.cache_dir, limit=options.cache_limit)
    journal, indexes = Journal(options.journal), Indexes.from_configuration()
    rows: list[Row] = []
    for number, path in enumerate(options.python):
        interpreter = Interpreter.of(path)
        listing = releases(packages(indexes, "torch"), interpreter)
        rows += _left_out(listing, interpreter)
        builds = list(_newest_of_each_minor(listing.builds))
        asked = builds if options.all or number == 0 else [builds[0], builds[-1]]
        venvs = VenvEnvironments(cache, interpreter, indexes)
        for build in asked:
            rows.append(Row(_short(interpreter.version), Version(build.version), _said(venvs, build, journal)))
            print(rows[-1], file=sys.stderr)
        venvs.close()
    print("\n".join(_table(rows)))
    return 0 if all(row.said == "yes" or "needs a Python" in row.said for row in rows) else 1


def _newest_of_each_minor(builds: Sequence[Build]) -> Iterator[Build]:
    for _, group in groupby(builds, key=lambda build: Version(build.version).release[:2]):
        yield list(group)[-1]


def _left_out(listing: Listing, interpreter: Interpreter) -> Iterator[Row]:
    """Releases with wheels whose ``torch.compile`` refuses this Python."""
    for out in listing.left_out:
        if "needs a Python" in out.reason:
            yield Row(_short(interpreter.version), Version(out.version), out.reason)


def _said(venvs: VenvEnvironments, build: Build, journal: Journal) -> str:
    try:
        with Probe(venvs.environment(build), journal, ProbeOptions(_PATIENT)) as probe:
            for name, source, kind in _ASKED:
                trouble, found = probe.untestable(Repro(source)), probe.mismatch(Repro(source))
                if trouble is not None or (found.kind if found else None) is not kind:
                    return f"{name}: {trouble.detail if trouble else found.summary if found else 'no mismatch'}"
    except TorchbisectError as error:
        return str(error)
    finally:
        venvs.release(build)
    return "yes"


def _short(version: str) -> str:
    return ".".join(version.split(".")[:2])


def _table(rows: Sequence[Row]) -> Iterator[str]:
    pythons = sorted({row.python for row in rows}, key=Version)
    minors = sorted({row.torch.release[:2] for row in rows})
    said = {(row.torch.release[:2], row.python): row.said for row in rows}
    yield "| torch | " + " | ".join(pythons) + " |"
    yield "|---|" + "---|" * len(pythons)
    for minor in minors:
        cells = (_cell(said.get((minor, python), "")) for python in pythons)
        yield f"| {minor[0]}.{minor[1]} | " + " | ".join(cells) + " |"


def _cell(said: str) -> str:
    return "refuses" if "needs a Python" in said else said.replace("|", "/")[:80]


if __name__ == "__main__":
    raise SystemExit(main())
