"""Tasks on a real Ray cluster of two local nodes, one of which is killed during the run."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from foreign_modules import fill_with_modules
from planted import planted
from running import COMMAND, Tool
from waiting import eventually, processes_of

from torchbisect.triage.database import Database
from torchbisect.triage.ledger.state import State
from torchbisect.triage.ledger.store import Ledger

ray = pytest.importorskip("ray", reason="needs the extra: python -m pip install 'torchbisect[ray]'")

pytestmark = [pytest.mark.torch, pytest.mark.long, pytest.mark.timeout(600)]

WRONG = "import torch\nf = lambda x: x.sin() * (1 + torch.compiler.is_compiling())\n"
RIGHT = "import torch\nf = lambda x: x.sin() + {0}\n"
CALL = "print(torch.compile(f, backend='eager')(torch.ones({0})))\n"
COUNT = 8


@pytest.fixture
def temporary(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of temporary files of all nodes and of the command; the path of a socket has 107 bytes at most."""
    with tempfile.TemporaryDirectory(prefix="nodes-", ignore_cleanup_errors=True) as folder:
        monkeypatch.setenv("TMPDIR", folder)
        yield Path(folder)


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch, temporary: Path) -> Iterator[Any]:
    """Start two local nodes with one CPU each."""
    from ray.cluster_utils import Cluster

    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    # Without this, Ray replaces 127.0.0.1 by the outer address of this machine.
    monkeypatch.setenv("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    here: dict[str, Any] = {"node_ip_address": "127.0.0.1", "num_cpus": 1, "object_store_memory": 80 << 20}
    made = Cluster(initialize_head=True, head_node_args={**here, "include_dashboard": False})
    made.add_node(**here)
    yield made
    made.shutdown()


def test_the_death_of_a_node_loses_no_result_and_leaves_nothing(
    cluster: Any, tool: Tool, tmp_path: Path, temporary: Path
) -> None:
    assert cluster.address.startswith("127.0.0.1:")
    scripts = tool.folder / "scripts"
    scripts.mkdir()
    imported = tmp_path.with_name("imported")
    fill_with_modules(tool.folder, imported)
    for number in range(COUNT):
        text = (WRONG if number % 4 == 0 else RIGHT.format(number)) + CALL.format(number + 1)
        (scripts / f"s{number}.py").write_text(text)
    command = [str(COMMAND), "triage", "scripts", "--no-bisect", "--no-minimize", "--cache-dir", str(tool.cache)]
    command += ["--executor", "ray", "--address", cluster.address]
    process = subprocess.Popen(
        command, cwd=tool.folder, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, env=dict(os.environ)
    )
    assert process.stderr is not None
    killed, lines = False, []
    workers: list[psutil.Process] = []
    for line in process.stderr:
        lines.append(line)
        if line.startswith("[2/") and not killed:
            (node,) = cluster.worker_nodes
            cluster.remove_node(node, allow_graceful=False)
            killed = True
        if line.startswith("[4/"):
            workers = [one for one in psutil.process_iter(["name"]) if one.info["name"].startswith("ray::run")]
            for one in workers:
                one.kill()
    assert workers, "a process of the other node is killed in the middle of a task"
    assert process.wait(timeout=60) == 0, "".join(lines)
    assert killed
    assert imported.read_text() == "", "a file where the user works was a module of the tool"
    with Database(tool.folder / "torchbisect-triage" / "triage.sqlite") as database:
        found = {row.name: row for row in database.rows()}
    wanted = {f"s{number}.py": "none" if number % 4 else "mismatch" for number in range(COUNT)}
    assert {name: row.state for name, row in found.items()} == wanted
    for row in found.values():
        assert (tool.folder / "torchbisect-triage" / row.report / "report.html").is_file()
    again = tool.run(
        "triage", "scripts", "--no-bisect", "--no-minimize", "--executor", "ray", "--address", "127.0.0.1:1"
    )
    assert again.returncode == 0, "nothing is left to ask, so no cluster is needed"
    assert "0 of them new, 0 to run" in again.stderr
    eventually(lambda: not (processes_of(temporary, "torchbisect") or left_in(temporary)))
    assert (processes_of(temporary, "torchbisect"), left_in(temporary)) == ([], [])


def left_in(temporary: Path) -> list[Path]:
    return [path for path in temporary.iterdir() if path.name.startswith("torchbisect")]


def test_a_ledger_is_asked_on_two_workers_and_on_a_cluster(cluster: Any, tool: Tool) -> None:
    """Both find what one worker finds; where nothing is new, no cluster is needed."""
    (tool.folder / "scripts").mkdir()
    for number in range(3):
        (tool.folder / "scripts" / f"s{number}.py").write_text(WRONG + CALL.format(number + 1))
    done = tool.run("triage", "scripts", "--no-bisect", "--no-minimize", "--torch", "installed")
    assert done.returncode == 0, done.stderr
    places = (("--workers", "2"), ("--executor", "ray", "--address", cluster.address))
    for words, version in zip(places, ("2.13.8", "2.13.9")):
        python = planted(tool.folder / version, version)
        named = ("--torch", "installed", "--python", str(python))
        done = tool.run("watch", *words, *named, "torchbisect-triage")
        assert done.returncode == 0, done.stderr
        assert "3 bugs, 3 to ask" in done.stderr
        with Database(tool.folder / "torchbisect-triage" / "triage.sqlite") as database:
            found = Ledger(database).bugs()
        assert {(one.standing.state, one.standing.newest) for one in found} == {(State.REPRODUCES, version)}
        again = tool.run("watch", "--executor", "ray", "--address", "127.0.0.1:1", *named, "torchbisect-triage")
        assert (again.returncode, "0 questions" in again.stdout) == (0, True), again.stderr


def test_a_missing_cluster_is_named(tool: Tool) -> None:
    tool.write(RIGHT.format(1) + CALL.format(2))
    done = tool.run("triage", ".", "--executor", "ray", "--address", "127.0.0.1:1", "--no-bisect")
    assert done.returncode == 5
    assert "no Ray cluster answers at 127.0.0.1:1" in done.stderr
    assert "Traceback" not in done.stderr
