"""Compare a whole ``torchbisect run`` of two checkouts, each with a Python of its own, in turns.

    python benchmarks/whole_run.py OLD/.venv/bin/python NEW/.venv/bin/python --cache-dir DIR [--rounds 2]

The script is ``examples/covariance_head.py`` on torch 2.8.0. A round before the others installs what is missing in DIR,
which both use, and finds out about the machine. Each run has a folder of results of its own, so no journal answers. DIR
needs room for seven releases. ``--cache-limit`` has to allow them twice, as each checkout may count environments of its
own, else they are made again in each run.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

EXAMPLE = Path(__file__).resolve().parents[1] / "examples/covariance_head.py"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("pythons", nargs=2, metavar="PYTHON", type=Path, help="of the old and the new checkout")
    parser.add_argument("--cache-dir", type=Path, required=True)
    parser.add_argument("--cache-limit", default="150GB")
    parser.add_argument("--torch", default="2.8.0")
    parser.add_argument("--rounds", type=int, default=2)
    options = parser.parse_args(arguments)
    where = ["--torch", options.torch, "--cache-dir", str(options.cache_dir), "--cache-limit", options.cache_limit]
    taken: list[list[float]] = [[], []]
    with tempfile.TemporaryDirectory() as folder:
        for number in range(options.rounds + 1):
            for seconds, python in zip(taken, options.pythons):
                # Not resolved: the python of an environment is a link to that of the system.
                tool = Path(os.path.abspath(python)).with_name("torchbisect")
                out = Path(folder, f"out-{time.time_ns()}")
                began = time.perf_counter()
                subprocess.run(
                    [tool, "run", *where, "--out", out, EXAMPLE],
                    check=True, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                )  # fmt: skip
                if number:
                    seconds.append(time.perf_counter() - began)
                    print(f"  {python}: {seconds[-1]:.1f} s", flush=True)
    old, new = map(statistics.median, taken)
    print(f"old {old:.1f} s, new {new:.1f} s, ratio {new / old:.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
