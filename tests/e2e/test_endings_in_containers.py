"""A triage in containers that a signal ends, at any of several moments, leaves nothing on the machine."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator

import docker
import pytest
from running import COMMAND, Tool
from waiting import eventually, processes_of

from torchbisect.containers.docker.engine import LABEL, NETWORK_VARIABLE

pytestmark = [pytest.mark.torch, pytest.mark.long, pytest.mark.timeout(600)]

#: A script that is right, and one that never ends, hides from its parent and starts more.
SOON = "import torch\nprint(torch.compile(lambda x: x + 1, backend='eager')(torch.ones(2)))\n"
ENDLESS = """\
import os, signal, torch
f = torch.compile(lambda x: x + 1, backend="eager")
for number in (1, 2, 3, 13, 15):
    signal.signal(number, signal.SIG_IGN)
for _ in range(3):
    if not os.fork():
        os.setsid()
        break
f(torch.ones(1))
while True:
    pass
"""


@pytest.fixture
def typed(
    tool: Tool, own_image: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Return a function that starts a triage of a folder of scripts, with a folder of temporary files of its own."""
    monkeypatch.setenv(NETWORK_VARIABLE, "host")
    (tool.folder / "tmp").mkdir()
    begun: list[subprocess.Popen[str]] = []

    def start(*scripts: str) -> subprocess.Popen[str]:
        folder = tool.folder / f"scripts-{len(begun)}"
        folder.mkdir()
        for number, text in enumerate(scripts):
            (folder / f"s{number}.py").write_text(text)
        words = ["--sandbox", "docker", "--image", own_image, "--torch", "2.13.0"]
        words += ["--no-bisect", "--no-minimize", "--out", str(tool.folder / f"out-{len(begun)}")]
        begun.append(
            subprocess.Popen(
                [str(COMMAND), "triage", "--cache-dir", str(tool.cache), *words, str(folder)],
                cwd=tool.folder,
                env={**os.environ, "TMPDIR": str(tool.folder / "tmp")},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                start_new_session=True,
                preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),  # the tests may run after nohup
            )
        )
        return begun[-1]

    yield start
    for one in begun:
        one.kill()
        one.wait()


def wait_for(process: subprocess.Popen[str], word: str) -> None:
    """Read the messages until one has the word; a thread reads the rest, so that the process never waits."""
    assert process.stderr is not None
    said = []
    for line in process.stderr:
        said.append(line)
        if word in line:
            threading.Thread(target=process.stderr.read, daemon=True).start()
            return
    raise AssertionError("".join(said))


def containers() -> list[str]:
    client = docker.from_env(timeout=60)
    try:
        found = client.containers.list(all=True, filters={"label": LABEL}, ignore_removed=True)
        return [f"{one.name} {one.status} {one.labels} {one.attrs['Args'][:4]}" for one in found]
    finally:
        client.close()


@pytest.mark.parametrize("moment", ["question", "between"])
@pytest.mark.parametrize(
    "number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL], ids=lambda one: one.name
)
def test_a_signal_leaves_nothing(
    typed: Callable[..., subprocess.Popen[str]], tool: Tool, number: signal.Signals, moment: str
) -> None:
    run = typed(SOON, ENDLESS, SOON)
    wait_for(run, "[1/3]")
    if moment == "question":
        assert eventually(lambda: containers() != [])
        time.sleep(6)
    os.kill(run.pid, number)
    assert run.wait(timeout=90) == (-9 if number == signal.SIGKILL else 130)
    assert eventually(lambda: containers() == []), containers()
    assert eventually(lambda: processes_of(tool.folder / "tmp") == []), processes_of(tool.folder / "tmp")
    assert eventually(lambda: list((tool.folder / "tmp").iterdir()) == [])


def test_the_end_of_one_run_is_not_that_of_another(typed: Callable[..., subprocess.Popen[str]], tool: Tool) -> None:
    killed, other = typed(ENDLESS), typed(SOON, SOON.replace("+ 1", "+ 2"), SOON.replace("+ 1", "+ 3"))
    wait_for(other, "[1/3]")
    assert eventually(lambda: len(containers()) >= 1)
    os.killpg(killed.pid, signal.SIGKILL)
    assert other.wait(timeout=300) == 0
    assert eventually(lambda: containers() == []), containers()
    assert eventually(lambda: list((tool.folder / "tmp").iterdir()) == [])
