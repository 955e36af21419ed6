"""Grow large scripts round a known mismatch.

    python benchmarks/generate.py BUG SEED

Prints a program of the kind that people write, in the middle of which the statements of a bug stand. The bugs are those
of ``generated_bugs``; each has a minimal script, to which a reduction of the program is compared. A seed chooses what
the statements are part of, what calls that part, and what the program has beside it, so seeds give different programs.

Seeds that 3 divides are a test set: no pass of the minimizer may be written against a program that one of them gives.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
from textwrap import dedent, indent

from generated_bugs import BUGS, Bug
from generated_parts import BLOCKS, DATA, MODELS, SETTINGS
from generated_training import COMPILED, EXTRAS, TRAINING

TEST_SEEDS = range(0, 20, 3)
"""The test set among the first twenty seeds."""

_MODULES = (
    "argparse", "collections", "contextlib", "copy", "dataclasses", "functools", "itertools", "logging", "math",
    "operator", "time", "typing",
)  # fmt: skip


def generated(bug: Bug, seed: int) -> str:
    """Return the program that a seed grows round a bug."""
    rng = random.Random(f"{bug.name} {seed}")
    extras = rng.sample(EXTRAS, rng.randint(2, len(EXTRAS)))
    training, compiled = rng.choice(TRAINING), rng.choice(COMPILED)
    places = {"COMPILE": [compiled]}
    for extra in extras:
        for place, lines in extra.lines.items():
            places.setdefault(place, []).append(lines)
    sections = [
        bug.definitions,
        rng.choice(SETTINGS),
        rng.choice(DATA),
        *(extra.definitions for extra in extras),
        _filled(rng.choice(BLOCKS), {"STATEMENTS": [bug.statements]}),
        rng.choice(MODELS),
        _filled(training, places),
    ]
    text = "\n\n\n".join(dedent(section).strip("\n") for section in sections if section)
    for name, values in _CHOICES.items():
        text = text.replace(name, str(rng.choice(values)))
    return f"{_imports(text)}\n\n\n{text.replace('BACKEND', bug.backend)}\n"


_CHOICES: dict[str, tuple[object, ...]] = {
    "BATCH": (3, 4, 6),
    "TIME": (3, 4, 5),
    "WIDTH": (4, 6, 8, 12),
    "DEPTH": (2, 3),
    "STEPS": (2, 3, 4),
    "Block": ("Mixer", "Cell", "Gate", "Stage"),
    "history": ("losses", "curve", "records"),
    "hidden": ("hidden", "state", "features"),
    "encode": ("encode", "embed", "lift"),
}
"""What may take the place of each name in the parts of a program."""


def _filled(part: str, places: dict[str, list[str]]) -> str:
    """Return a part with lines in place of its markers, as deep as the marker stands; a marker without lines goes."""
    written: list[str] = []
    for line in dedent(part).splitlines():
        marker = line.strip()
        if marker.isupper() and marker.isidentifier():
            deep = line[: -len(marker)]
            written += [indent(dedent(lines).strip("\n"), deep) for lines in places.get(marker, ())]
        else:
            written.append(line)
    return "\n".join(written)


def _imports(text: str) -> str:
    """Return the imports of the modules that a program names."""
    used = (f"import {name}" for name in _MODULES if re.search(rf"\b{name}\.", text))
    return "\n".join([*used, "", "import torch", "from torch import nn"])


def main() -> int:
    """Print one program."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bug", choices=BUGS)
    parser.add_argument("seed", type=int)
    arguments = parser.parse_args()
    sys.stdout.write(generated(BUGS[arguments.bug], arguments.seed))
    return 0


if __name__ == "__main__":
    sys.exit(main())
