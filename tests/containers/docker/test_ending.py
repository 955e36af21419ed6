"""Containers end with the run that made them, however that ends and whatever the script in them does."""

from __future__ import annotations

import contextlib
import hashlib
import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import docker
import pytest
from docker.models.containers import Container
from waiting import eventually, processes_of

from torchbisect.containers.docker.container_processes import Confinement
from torchbisect.containers.docker.engine import LABEL, NETWORK_VARIABLE, Engine, archive
from torchbisect.containers.docker.environments import DockerEnvironment
from torchbisect.containers.docker.images import check_image
from torchbisect.containers.docker.volume import Volume
from torchbisect.containers.environment import Facts
from torchbisect.core.build import Build

pytestmark = pytest.mark.long

#: A run that has a script in a container: as an agent, which it does not ask anything, or as a command.
RUN = """
import sys
from torchbisect.containers.docker.engine import Engine
from torchbisect.containers.docker.environments import DockerEnvironment
from torchbisect.containers.docker.images import check_image
from torchbisect.containers.docker.container_processes import Confinement
from torchbisect.containers.docker.volume import Volume
from torchbisect.containers.environment import Facts
from torchbisect.core.build import Build

image, volume, how, script = sys.argv[1:]
engine = Engine()
volume = Volume(engine, check_image(engine, image), volume)
there = DockerEnvironment(Build("2.8.0"), Facts("", None, "", ""), "/usr/bin/python3", volume, Confinement())
if how == "agent":
    process = there.start(["-c", script])
    print(process.read_line(60), flush=True)
    sys.stdin.read()
else:
    there.run(["-c", script], timeout=600)
"""

LOOP = "print('begun', flush=True)\nwhile True: pass\n"
HOSTILE = """
import ctypes, os, signal
for number in range(1, 65):
    try: os.kill(1, number)
    except OSError: pass
libc = ctypes.CDLL(None, use_errno=True)
held = []
for path in ["/proc/1/fd/0", "/proc/1/mem", *(f"/proc/{pid}/fd/0" for pid in os.listdir("/proc") if pid.isdigit())]:
    for mode in (os.O_RDWR, os.O_WRONLY):
        try: held.append(os.open(path, mode | os.O_NONBLOCK))
        except OSError: pass
libc.ptrace(16, 1, 0, 0)
for _ in range(5):
    if not os.fork(): break
os.setsid()
"""


@pytest.fixture
def volume(engine_host: str) -> Iterator[str]:
    name = f"torchbisect-test-{uuid.uuid4().hex[:12]}"
    yield name
    client = docker.from_env(timeout=300)
    for container in client.containers.list(all=True, filters={"volume": name}):
        container.remove(force=True)
    client.volumes.get(name).remove()
    client.close()


@contextmanager
def a_run(image: str, volume: str, how: str, script: str, tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-c", RUN, image, volume, how, script]
    variables = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, stdin=subprocess.PIPE, env=variables, start_new_session=True) as run:
        try:
            yield run
        finally:
            run.kill()


def containers(volume: str) -> list[Container]:
    client = docker.from_env(timeout=300)
    try:
        filters = {"volume": volume, "label": f"{LABEL}=run"}
        return list(client.containers.list(all=True, filters=filters, ignore_removed=True))
    finally:
        client.close()


def kill_guards(tmp_path: Path, *, optional: bool = False) -> None:
    """Kill the guard that would remove what the run leaves; ``optional`` if the run may have none yet."""
    killed = processes_of(tmp_path, "leftovers")
    for one in killed:
        one.kill()
    assert killed or optional


@pytest.mark.parametrize("how", ["agent", "command"])
@pytest.mark.parametrize("script", [LOOP, HOSTILE + LOOP], ids=["loop", "hostile"])
def test_a_container_ends_with_the_connection(
    own_image: str, volume: str, tmp_path: Path, how: str, script: str
) -> None:
    with a_run(own_image, volume, how, script, tmp_path) as run:
        assert eventually(lambda: [one.status for one in containers(volume)] == ["running"])
        time.sleep(1.0)
        assert [one.status for one in containers(volume)] == ["running"]
        kill_guards(tmp_path)
        os.kill(run.pid, signal.SIGKILL)
        run.wait()
        assert eventually(lambda: [one.status for one in containers(volume)] == ["exited"])
    engine = Engine()
    engine.sweep()
    engine.close()
    assert containers(volume) == []


def test_a_killed_run_leaves_no_container(own_image: str, volume: str, tmp_path: Path) -> None:
    with a_run(own_image, volume, "command", LOOP, tmp_path) as run:
        assert eventually(lambda: [one.status for one in containers(volume)] == ["running"])
        os.killpg(run.pid, signal.SIGKILL)
        run.wait()
        assert eventually(lambda: containers(volume) == []), "no other run was needed"
        assert eventually(lambda: list(tmp_path.iterdir()) == [])


def test_a_stopped_run_keeps_its_container(own_image: str, volume: str, tmp_path: Path) -> None:
    with a_run(own_image, volume, "command", LOOP, tmp_path) as run:
        assert eventually(lambda: [one.status for one in containers(volume)] == ["running"])
        os.kill(run.pid, signal.SIGSTOP)
        time.sleep(3)
        engine = Engine()
        engine.sweep()
        engine.close()
        assert [one.status for one in containers(volume)] == ["running"]
        os.kill(run.pid, signal.SIGCONT)


#: A run that is at work in the engine before any script runs: it installs, runs a program on the volume, or builds.
WORK = """
import sys
from torchbisect.containers.docker.engine import Engine
from torchbisect.containers.docker.environments import DockerEnvironments
from torchbisect.containers.docker.images import ImageOptions, build_image, check_image
from torchbisect.containers.docker.volume import Volume
from torchbisect.containers.index.indexes import Indexes
from torchbisect.containers.store.cache import Cache
from torchbisect.core.build import Build

how, image, volume, index, folder = sys.argv[1:]
if how == "install":
    options = {"image": ImageOptions(image), "volume": volume}
    DockerEnvironments(Cache(folder), Indexes(index), **options).environment(Build("2.8.0"))
elif how == "program":
    Volume(Engine(), check_image(Engine(), image), volume).run_program(["python3", "-c", "while True: pass"])
elif how == "look":
    check_image(Engine(), image)
else:
    build_image(Engine(), "cpu", base=image)
"""


@pytest.fixture
def slow_image(own_image: str, how: str) -> Iterator[str]:
    """An image of this test alone; to look into or to build on, its Python takes ten minutes for a program."""
    client = docker.from_env(timeout=600)
    made = client.containers.create(own_image, ["true"])
    name = f"localhost/torchbisect-test-slow:{uuid.uuid4().hex[:8]}"
    script = b'#!/bin/sh\nif [ "$1" = -c ]; then exec sleep 600; fi\nexec /usr/bin/python3 "$@"\n'
    if how in ("look", "build"):
        made.put_archive("/usr/local/bin", archive({"python3": script}, 0o755))
    repository, _, tag = name.partition(":")
    made.commit(repository, tag)
    made.remove()
    yield name
    client.images.remove(name, force=True)
    client.close()


def working(image: str) -> list[str]:
    """Return the containers that run, of an image or of those made of it."""
    client = docker.from_env(timeout=300)
    try:
        found = client.containers.list(filters={"ancestor": image}, ignore_removed=True)
        return [one.id for one in found if one.status == "running"]
    finally:
        client.close()


def at_work(image: str) -> bool:
    """Return true if containers of an image run for a second: one that looks into the image is soon gone."""
    before = working(image)
    time.sleep(1.0)
    return before != [] and working(image) == before


@pytest.mark.parametrize("how", ["install", "program", "look", "build"])
def test_work_in_the_engine_ends_with_the_connection(
    how: str,
    slow_image: str,
    volume: str,
    tmp_path: Path,
    serve: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The guard is killed too, so that the container itself has to end; what is left of it is swept."""
    monkeypatch.setenv(NETWORK_VARIABLE, "host")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    asked = threading.Event()
    served = serve(lambda path: asked.set() or time.sleep(100))
    image = slow_image
    command = [sys.executable, "-c", WORK, how, image, volume, f"{served.url}/simple", str(tmp_path / "cache")]
    docker.from_env(timeout=300).volumes.create(volume)
    with subprocess.Popen(command, start_new_session=True) as run:
        try:
            assert eventually(lambda: run.poll() is not None or at_work(image))
            assert eventually(lambda: run.poll() is not None or how != "install" or asked.is_set())
            assert run.poll() is None, "it ended before it was killed"
            kill_guards(tmp_path, optional=how == "build")
            os.killpg(run.pid, signal.SIGKILL)
            run.wait()
            assert eventually(lambda: working(image) == [])
        finally:
            run.kill()
    engine = Engine()
    engine.sweep()
    left = engine.client.containers.list(all=True, filters={"ancestor": image}, ignore_removed=True)
    engine.close()
    assert left == []


@pytest.fixture
def there(own_image: str, volume: str) -> Iterator[DockerEnvironment]:
    """An environment with the image's own Python."""
    engine = Engine()
    made = Volume(engine, check_image(engine, own_image), volume)
    yield DockerEnvironment(Build("2.8.0"), Facts("", None, "", ""), "/usr/bin/python3", made, Confinement())
    made.close()
    engine.close()


@pytest.mark.parametrize(
    ("script", "status", "output"),
    [
        ("import sys; print(repr(sys.stdin.read()))", 0, "''\n"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", -9, ""),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", -11, ""),
        ("import signal; print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)", 0, "True\n"),
        ("import os; os.fork() or os._exit(3); os.wait(); print('waited')", 0, "waited\n"),
        ("import os\nfor _ in range(20):\n if not os.fork(): os.fork(); os._exit(0)\nprint('many')", 0, "many\n"),
    ],
)
def test_the_command_runs_as_without_a_watch(there: DockerEnvironment, script: str, status: int, output: str) -> None:
    done = there.run(["-c", script], timeout=300)
    assert (done.status, done.output) == (status, output), done


def test_input_is_passed_on_byte_for_byte(there: DockerEnvironment) -> None:
    code = "import hashlib, sys\nfor line in sys.stdin.buffer: print(len(line), hashlib.sha256(line).hexdigest())"
    process = there.start(["-u", "-c", code])
    try:
        for size in (1, 4095, 65536, 1 << 20, 5 << 20):
            line = os.urandom(size).replace(b"\n", b"x") + b"\n"
            process.send(line)
            wanted = f"{len(line)} {hashlib.sha256(line).hexdigest()}\n".encode()
            assert process.read_line(60) == wanted
    finally:
        process.kill()


def test_a_command_that_reads_nothing_ends_all_the_same(there: DockerEnvironment) -> None:
    process = there.start(["-c", "print('here', flush=True); import time; time.sleep(1); print('end')"])
    assert process.read_line(60) == b"here\n"
    with contextlib.suppress(BrokenPipeError):
        process.send(b"x" * (8 << 20))
    assert process.read_line(60) == b"end\n"
    assert process.read_line(60) == b""
    assert process.kill() == 0


STOPS = {
    "itself": "os.kill(os.getpid(), 19)",
    "everything": "os.fork()\nos.kill(-1, 19)\nos.kill(os.getpid(), 19)",
    "again-and-again": "me = os.getpid()\nif os.fork() == 0:\n    while True: os.kill(me, 19)\ntime.sleep(900)",
    "traced": "me = os.getpid()\nif os.fork() == 0:\n"
    "    libc.ptrace(0x4206, me, 0, 0); libc.ptrace(0x4207, me, 0, 0); time.sleep(900)\ntime.sleep(900)",
}


@pytest.mark.parametrize("stop", STOPS.values(), ids=STOPS)
def test_a_command_that_is_asked_and_stopped_ends(there: DockerEnvironment, stop: str) -> None:
    dumpable = "libc = ctypes.CDLL(None)\nlibc.prctl(0x59616d61, -1, 0, 0, 0)\n"
    process = there.start(["-c", f"import ctypes, os, time\n{dumpable}print('here', flush=True)\n{stop}\n"])
    try:
        assert process.read_line(60) == b"here\n"
        begun = time.monotonic()
        assert process.read_line(60) == b""
        assert 8 < time.monotonic() - begun < 40
    finally:
        process.kill()


def test_a_command_that_is_asked_nothing_may_stop_itself(there: DockerEnvironment) -> None:
    script = "import os, time\nme = os.getpid()\nif os.fork() == 0: time.sleep(13); os.kill(me, 18); os._exit(0)\n"
    done = there.run(["-c", f"{script}os.kill(me, 19)\nprint('on')\n"], timeout=300)
    assert (done.status, done.output) == (0, "on\n"), done
