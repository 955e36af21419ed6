"""Run ``torchbisect suite`` on sixty tests with four planted bugs of real releases, and check groups and edges.

    python benchmarks/suite.py --cache-dir FOLDER

The suite is that of ``tests/support/planted_suite.py``. It passes on 2.13.0 but for two tests that fail everywhere, and
has four bugs on 2.8.0, which were fixed in different releases. Each release is downloaded, about 6 GB for CUDA.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))
from planted_suite import EDGES, write_planted_suite


def main() -> int:
    """Run the suite and print a line for each group; return 1 if a group or an edge is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache-dir", type=Path)
    parser.add_argument("--cache-limit", default="20GB")
    parser.add_argument("--out", type=Path, help="A folder that lasts, so that the same command continues.")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) if given.out is None else given.out.absolute()
        folder.mkdir(parents=True, exist_ok=True)
        write_planted_suite(folder)
        words = ["--good", "2.13.0", "--bad", "2.8.0", "--channel", "release", "--cache-limit", given.cache_limit]
        words += ["--cache-dir", str(given.cache_dir.absolute())] if given.cache_dir else []
        began = time.monotonic()
        command = [sys.executable, "-m", "torchbisect", "suite", "pytest tests -q", *words]
        status = subprocess.run(command, cwd=folder, check=False, stdout=subprocess.DEVNULL).returncode
        result = json.loads((folder / "torchbisect-suite" / "suite.json").read_text("utf-8"))
    found = {}
    for group in result["groups"]:
        bug = group["tests"][0].rpartition("::")[2].partition("[")[0]
        found[bug] = (group["last_bad"], group["first_fixed"])
        wanted = " and ".join(EDGES.get(bug, ("no", "group")))
        print(f"{bug}: {len(group['tests'])} tests, edge {' and '.join(found[bug])} (the truth: {wanted})")
    right = status == 0 and found == EDGES
    print(f"exit {status}, {time.monotonic() - began:.0f} s, {'all right' if right else 'WRONG'}")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
