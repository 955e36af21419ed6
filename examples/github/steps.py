"""Steps of the sample workflow, run from a checkout of torchbisect: only ``requirements.txt`` has to be installed."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(place.parent) for place in sorted(ROOT.glob("*/torchbisect"))]

if __name__ == "__main__":
    from torchbisect.triage import github_actions

    github_actions.run()
