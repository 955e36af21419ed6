"""Each effect of a command fails once and is killed at once; the same command afterwards gives the same answer.

By default a sample of the sites; ``TORCHBISECT_FAULTS=all`` takes every site.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from wheel_tree import WheelTree, with_requirements

pytestmark = pytest.mark.long

HERE = Path(__file__).parent
SUPPORT = HERE.parent / "support"
#: The exit codes of errors: no fault may look like an answer that the machine did not give.
ERRORS = (2, 5)
#: The number of faults of each command that are tried by default, evenly chosen.
SAMPLES = {"table_of_answers": 50, "small_search": 10}


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of an index of small wheels."""
    tree = with_requirements(WheelTree(tmp_path_factory.mktemp("index")))
    for version in ("2.7.0", "2.8.0"):
        tree.add("torch", version)
    command = [sys.executable, "-u", "-m", "http.server", "0", "--bind", "127.0.0.1", "--directory", str(tree.root)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        assert server.stdout is not None
        port = server.stdout.readline().partition(" port ")[2].split()[0]
        yield f"http://127.0.0.1:{port}/simple"
        server.kill()


def run_plan(subject: str, folder: Path, plan: list[dict[str, Any]], index: str) -> list[dict[str, Any]]:
    """Run the subject with each fault of the plan, and return what was seen."""
    folder.mkdir()
    (folder / "plan.json").write_text(json.dumps(plan))
    hidden = ("PIP_", "UV_", "TORCHBISECT_")
    variables = {name: value for name, value in os.environ.items() if not name.startswith(hidden)}
    variables |= {
        "PYTHONPATH": os.pathsep.join([str(HERE), str(SUPPORT), os.environ.get("PYTHONPATH", "")]),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PIP_CONFIG_FILE": os.devnull,
        "UV_NO_CONFIG": "1",
        "UV_DEFAULT_INDEX": index,
        "HOME": str(folder),
    }
    words = [subject, str(folder), str(folder / "plan.json"), str(folder / "result.json")]
    command = [sys.executable, str(HERE / "effects.py"), *words]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=3000, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    found: list[dict[str, Any]] = json.loads((folder / "result.json").read_text())
    return found


def faults(effects: list[tuple[str, str, int]]) -> list[dict[str, Any]]:
    """Return a failure and a kill at each kind and site of torchbisect; the tests themselves have effects too."""
    ours = [[kind, site] for kind, site, _ in effects if site != "elsewhere"]
    return [{"target": target, "how": how} for target in ours for how in ("fail", "kill")]


def wrong(seen: Mapping[str, Any], wanted: list[str], status: int) -> list[str]:
    """Return what is wrong with a faulty run and the run after it."""
    first, after, state, between = seen["first"], seen["after"], seen["state"], seen["between"]
    found = []
    if seen["how"] == "kill":
        if first["status"] not in (-9, status):
            found.append(f"a killed run ended with {first['status']}")
    elif first["status"] == status:
        if between["answer"] != wanted:
            found.append(f"another answer: {between['answer']}")
    elif first["status"] not in ERRORS:
        found.append(f"exit code {first['status']} is an answer's")
    elif not re.search(r"^torchbisect: ", first["said"], re.MULTILINE):
        found.append("no line says what happened")
    if "Traceback" in first["said"]:
        found.append("a traceback")
    if between["broken"]:
        found.append(f"broken environments {between['broken']}")
    if (after["status"], state["answer"]) != (status, wanted):
        found.append(f"afterwards exit code {after['status']} and {state['answer']}: {after['said'][-300:]}")
    if state["unfinished"] or state["broken"] or state["temporary"]:
        found.append(f"left: {state}")
    return found


@pytest.mark.timeout(3400)
@pytest.mark.parametrize("subject", SAMPLES)
def test_each_effect_fails_once_and_is_killed_once(subject: str, index: str, tmp_path: Path) -> None:
    undisturbed = run_plan(subject, tmp_path / "trace", [{"target": None, "how": ""}], index)[0]
    status, wanted = undisturbed["first"]["status"], undisturbed["state"]["answer"]
    assert (status, undisturbed["after"]["status"]) == (0, 0), undisturbed["first"]["said"]
    assert wanted is not None
    effects = undisturbed["first"]["effects"]
    kinds = Counter(kind for kind, _, _ in effects)
    print(f"{subject}: {sum(count for _, _, count in effects)} effects, {len(effects)} kinds and sites, {dict(kinds)}")
    plan = faults(effects)
    if os.environ.get("TORCHBISECT_FAULTS") != "all":
        # An odd step takes failures and kills in turn.
        plan = plan[:: max(1, len(plan) // SAMPLES[subject]) | 1]
    results = run_plan(subject, tmp_path / "faults", plan, index)
    assert len(results) == len(plan)
    bad = [f"{one['how']} at {' '.join(one['target'])}: {'; '.join(said)}"
           for one in results if (said := wrong(one, wanted, status))]  # fmt: skip
    ended = Counter(one["first"]["status"] for one in results)
    print(f"{subject}: {len(plan)} faults, exit codes {dict(ended)}, {len(bad)} wrong")
    assert not bad, "\n".join(bad)
