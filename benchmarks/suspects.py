"""Measures the order of suspects on made-up ranges of commits, in which the culprit is known.

    python benchmarks/suspects.py [--ranges 400] [--seed 0]

A range has as many commits of each component as a release of PyTorch has: ``suspects.json`` has the counts and their
source. The files of a commit are drawn from the installed torch, so that large folders have more changes. The culprit
is a commit of the faulty stage. How often it is among the first 1, 3 and 10 is counted for each thing that may be known
besides the stage. These are no real ranges: real commits name their component less often, and touch files of several.
"""

from __future__ import annotations

import argparse
import datetime
import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from torchbisect.bisect.sources.history import Commit
from torchbisect.bisect.sources.suspects import Suspect, rank_suspects

PLACES = (1, 3, 10)
SIZES = (20, 80)
#: The folders of each component, and files that stand for all that no installation has.
FOLDERS = {
    "inductor": ("torch/_inductor",),
    "dynamo": ("torch/_dynamo",),
    "aot": ("torch/_functorch", "torch/_subclasses"),
    "fx": ("torch/fx",),
    "distributed": ("torch/distributed",),
    "export": ("torch/export",),
}
ELSEWHERE = ("aten/src/ATen/native/x.cpp", "torch/csrc/autograd/x.cpp", "docs/x.rst", ".github/x.yml", "test/test_x.py")
STAGES = ("inductor", "dynamo", "aot")
_START = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)


@dataclass(frozen=True)
class Range:
    """Commits, the one at fault, and the stage where the mismatch arises."""

    commits: tuple[Commit, ...]
    culprit: Commit
    stage: str

    @property
    def file(self) -> str:
        """A file that the culprit changes."""
        return self.culprit.files[0]


#: What is known besides the commits, and the ranking by it.
KNOWN: dict[str, Callable[[Range], Sequence[Suspect]]] = {
    "nothing": lambda one: rank_suspects(one.commits),
    "stage": lambda one: rank_suspects(one.commits, one.stage),
    "stage, words": lambda one: rank_suspects(one.commits, one.stage, (), (Path(one.file).stem,)),
    "stage, stack": lambda one: rank_suspects(one.commits, one.stage, (one.file,)),
}


class Maker:
    """Makes ranges; one seed gives the same ranges on the same torch."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)
        facts = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
        self._shares = dict(facts["tagged"])
        self._shares["none"] = facts["commits"] - sum(self._shares.values())
        found = find_spec("torch")
        assert found is not None
        assert found.origin is not None
        site = Path(found.origin).parents[1]
        self._files = {
            name: [file.relative_to(site).as_posix() for folder in folders for file in (site / folder).rglob("*.py")]
            for name, folders in FOLDERS.items()
        }

    def range(self, size: int) -> Range:
        """Return a range of so many commits; the culprit is anywhere in it."""
        stage, names = self._rng.choice(STAGES), list(self._shares)
        parts = self._rng.choices(names, [self._shares[name] for name in names], k=size)
        place = self._rng.randrange(size)
        parts[place] = stage
        commits = tuple(self._commit(number, part) for number, part in enumerate(parts))
        return Range(commits, commits[place], stage)

    def _commit(self, number: int, part: str) -> Commit:
        own = self._files.get(part, ELSEWHERE)
        files = tuple(dict.fromkeys(self._rng.choices(own, k=self._rng.randint(1, 3))))
        subject = f"[{part}] Change {Path(self._rng.choice(files)).stem}" if part != "none" else "Change this and that"
        return Commit(f"{number + 1:040x}", subject, _START, files=files)


def place_of(ranked: Sequence[Suspect], culprit: Commit) -> int:
    """Return the place of the culprit, from 1."""
    return 1 + next(number for number, suspect in enumerate(ranked) if suspect.commit.sha == culprit.sha)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--ranges", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    print(f"| commits | known | {' | '.join(f'in the first {place}' for place in PLACES)} |\n|---|---|---|---|---|")
    for size in SIZES:
        maker = Maker(options.seed)
        ranges = [maker.range(size) for _ in range(options.ranges)]
        for known, rank in KNOWN.items():
            places = [place_of(rank(one), one.culprit) for one in ranges]
            shares = [sum(place <= most for place in places) / len(places) for most in PLACES]
            print(f"| {size} | {known} | {' | '.join(f'{share:.0%}' for share in shares)} |")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
