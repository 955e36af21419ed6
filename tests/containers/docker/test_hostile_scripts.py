"""Hostile scripts, each run in a real container; afterwards this machine and the next run are checked."""

from __future__ import annotations

import ast
import os
import socket
import threading
import time
import uuid
from collections.abc import Iterator
from typing import Any

import docker
import psutil
import pytest
from engine import BASE

from torchbisect.containers.docker.container_processes import Confinement
from torchbisect.containers.docker.engine import LABEL, NETWORK_VARIABLE
from torchbisect.containers.docker.environments import DockerEnvironment, DockerEnvironments
from torchbisect.containers.docker.images import ImageOptions
from torchbisect.containers.index.indexes import Indexes
from torchbisect.containers.store.cache import Cache
from torchbisect.core.build import Build

pytestmark = pytest.mark.long


def volume_state(environment: DockerEnvironment) -> str:
    """Return all files in the volume with sizes and checksums."""
    script = "cd /torchbisect && find . -type f -not -name torchbisect-facts.json -exec sha256sum {} + | sort"
    return environment.volume.run_program(["sh", "-c", script])


@pytest.fixture(scope="module")
def environments(
    engine_host: str, make_tree: Any, serve_tree_longer: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[DockerEnvironments]:
    """Environments in this module's own volume, with low limits that tests reach quickly."""
    place = tmp_path_factory.mktemp("hostile")
    tree = make_tree(place / "index")
    tree.add("torch", "2.8.0")
    volume = f"torchbisect-test-{uuid.uuid4().hex[:12]}"
    confinement = Confinement(memory=256 << 20, scratch=32 << 20, processes=64)
    indexes = Indexes(f"{serve_tree_longer(tree).url}/simple")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(NETWORK_VARIABLE, "host")
        made = DockerEnvironments(
            Cache(place / "cache"),
            indexes,
            image=ImageOptions(base=BASE),
            confinement=confinement,
            volume=volume,
        )
        made.environment(Build("2.8.0"))
    yield made
    made.close()
    client = docker.from_env(timeout=300)
    client.volumes.get(volume).remove()
    client.close()


@pytest.fixture
def victim(environments: DockerEnvironments) -> Iterator[DockerEnvironment]:
    """Environment that scripts attack; afterwards it must be unchanged, with no process left."""
    environment = environments.environment(Build("2.8.0"))
    before = volume_state(environment)
    yield environment
    assert volume_state(environment) == before
    done = environment.run(["-S", "-c", "print('well')"], timeout=300)
    assert (done.status, done.output) == (0, "well\n")
    client = docker.from_env(timeout=300)
    running = client.containers.list(filters={"label": LABEL})
    client.close()
    assert running == []


def count_sleepers(seconds: str) -> int:
    """Return the number of processes on this machine, seen from outside the containers, that sleep this long."""
    count = 0
    for one in psutil.process_iter(["cmdline"]):
        count += seconds in " ".join(one.info["cmdline"] or [])
    return count


def test_a_fork_bomb(victim: DockerEnvironment) -> None:
    code = "import os, time\nwhile True:\n    try: os.fork()\n    except OSError: time.sleep(0.01)"
    begun = time.monotonic()
    assert victim.run(["-S", "-c", code], timeout=2).timed_out
    assert time.monotonic() - begun < 40


def test_memory_is_taken_until_the_limit(victim: DockerEnvironment) -> None:
    done = victim.run(["-c", "x = []\nwhile True: x.append(bytearray(1 << 24))"], timeout=300)
    assert done.status == -9, done
    assert "out of memory" in done.errors


def test_a_full_scratch_folder(victim: DockerEnvironment) -> None:
    code = "f = open('/tmp/x', 'wb')\nwhile True: f.write(bytes(1 << 20))"
    done = victim.run(["-c", code], timeout=300)
    assert done.status == 1
    assert "No space left on device" in done.errors


def test_an_endless_loop_that_ignores_signals(victim: DockerEnvironment) -> None:
    code = (
        "import signal\n"
        "for n in range(1, 65):\n"
        "    try: signal.signal(n, signal.SIG_IGN)\n"
        "    except (OSError, ValueError): pass\n"
    )
    begun = time.monotonic()
    assert victim.run(["-c", code + "while True: pass"], timeout=2).timed_out
    assert time.monotonic() - begun < 30


def test_a_gigabyte_of_output(victim: DockerEnvironment) -> None:
    code = "import sys\nfor _ in range(1024): sys.stdout.buffer.write(b'x' * (1 << 20))\nprint('end')"
    done = victim.run(["-c", code], timeout=120)
    assert done.status == 0
    assert done.output.endswith("end\n")
    assert len(done.output) < 1 << 21


def test_a_grandchild_that_outlives_its_parent(victim: DockerEnvironment) -> None:
    code = (
        "import os, subprocess\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    subprocess.Popen(['sleep', '98765'], stdin=-3, stdout=-3, stderr=-3, env={})\n"
        "    os._exit(0)\n"
        "os.wait(); print('gone')"
    )
    done = victim.run(["-c", code], timeout=300)
    assert done.output == "gone\n"
    assert count_sleepers("98765") == 0


def test_no_network_connection_works(victim: DockerEnvironment) -> None:
    with socket.socket() as listener:
        listener.bind(("0.0.0.0", 0))
        listener.listen()
        port = listener.getsockname()[1]
        reached = threading.Event()

        def accept() -> None:
            try:
                listener.accept()
                reached.set()
            except OSError:
                pass

        threading.Thread(target=accept, daemon=True).start()
        hosts = [
            "127.0.0.1",
            "172.17.0.1",
            "10.0.0.1",
            "169.254.169.254",
            "8.8.8.8",
            "localhost",
            "host.docker.internal",
        ]
        code = (
            "import socket\n"
            f"for host in {hosts!r}:\n"
            f"    try: socket.create_connection((host, {port}), timeout=2); print('reached', host)\n"
            "    except OSError as error: pass\n"
            "print(sorted(name for _, name in socket.if_nameindex()))"
        )
        done = victim.run(["-c", code], timeout=300)
        assert "reached" not in done.output, done
        assert ast.literal_eval(done.output.splitlines()[-1]) == ["lo"]
        assert not reached.is_set()


def test_no_secrets_are_in_the_environment(victim: DockerEnvironment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "hush-hush")
    code = (
        "import glob, os\n"
        "print(dict(os.environ))\n"
        "for place in glob.glob('/proc/*/environ') + ['/etc/shadow', '/etc/gshadow']:\n"
        "    try: print(open(place, 'rb').read())\n"
        "    except OSError: pass\n"
        "print(glob.glob('/var/run/docker*'), glob.glob('/run/docker*'), glob.glob('/run/secrets*'))"
    )
    done = victim.run(["-c", code], timeout=300)
    assert "hush-hush" not in done.output
    assert "UV_" not in done.output
    assert done.output.endswith("[] [] []\n"), done


WRITE = """
import os, sys, torch
places = [torch.__file__, sys.executable, sys.prefix + "/new", "/torchbisect/uv/new", "/torchbisect/venvs/new"]
places += ["/usr/local/bin/uv", "/etc/passwd", "/new", "/home/new", "/var/tmp/new", "/sys/new"]
acts = [lambda place: open(place, "ab").write(b"x"), os.unlink, lambda place: os.chmod(place, 0o777)]
for place in places:
    for act in acts:
        try:
            act(place)
            print("done to", place)
        except OSError:
            pass
"""


def test_nothing_that_others_read_is_writable(victim: DockerEnvironment) -> None:
    done = victim.run(["-c", WRITE], timeout=300)
    assert (done.status, done.output) == (0, ""), done


def test_parent_processes_and_init_cannot_be_killed(victim: DockerEnvironment) -> None:
    code = (
        "import os, signal, time\n"
        "for pid in (os.getppid(), 1):\n"
        "    for n in (15, 9):\n"
        "        try: os.kill(pid, n)\n"
        "        except OSError: pass\n"
        "time.sleep(0.2); print('still here')"
    )
    done = victim.run(["-c", code], timeout=300)
    # Killed or not, it ends, and the fixture sees that the next run is whole.
    assert not done.timed_out


@pytest.mark.parametrize("code", [0, 1, 2, 77, 126, 127, 128, 255])
def test_an_immediate_exit(victim: DockerEnvironment, code: int) -> None:
    assert victim.run(["-S", "-c", f"import os; os._exit({code})"], timeout=300).status == code


def test_a_link_out_of_the_scratch_folder(victim: DockerEnvironment, tmp_path: Any) -> None:
    outside = tmp_path / "outside"
    outside.write_text("mine")
    folder = tmp_path / "folder"
    folder.mkdir()
    code = (
        "import os\n"
        f"for target in ('/etc/passwd', {str(outside)!r}, '/proc/1/root/etc/passwd'):\n"
        "    os.symlink(target, 'link')\n"
        "    try: open('link', 'w').write('theirs'); print('wrote', target)\n"
        "    except OSError: pass\n"
        "    os.unlink('link')\n"
        "os.symlink('/', 'root')"
    )
    (folder / "s.py").write_text(code)
    done = victim.run(["s.py"], timeout=300, directory=str(folder))
    assert (done.status, done.output) == (0, ""), done
    assert outside.read_text() == "mine"
    assert os.listdir(folder) == ["s.py"]


RIGHTS = """
import ctypes, os, shutil, subprocess
libc = ctypes.CDLL(None, use_errno=True)
said = {"uid": os.getuid()}
said["mount"] = libc.mount(b"none", b"/tmp", b"tmpfs", 0, b"")
said["umount"] = libc.umount2(b"/torchbisect", 2)
said["remount"] = libc.mount(b"none", b"/torchbisect", b"none", 32, b"")
said["user namespace"] = libc.unshare(0x10000000)
said["chroot"] = libc.chroot(b"/")
for name in ("setuid", "setgid"):
    try:
        getattr(os, name)(0)
        said[name] = 0
    except OSError:
        said[name] = -1
status = open("/proc/self/status").read()
said["capabilities"] = int(status.split("CapBnd:")[1].split()[0], 16)
said["no new privileges"] = int(status.split("NoNewPrivs:")[1].split()[0])
said["seccomp"] = int(status.split("Seccomp:")[1].split()[0])
def output(*command):
    return subprocess.run(command, stdin=-3, capture_output=True, text=True).stdout.strip()
shutil.copy("/usr/bin/id", "/tmp/id")
os.chmod("/tmp/id", 0o6755)
said["set-uid copy"] = output("/tmp/id", "-u")
said["su"] = output("/bin/su", "-c", "id -u") if os.path.exists("/bin/su") else ""
print(said)
"""


def test_no_more_rights_can_be_gained(victim: DockerEnvironment) -> None:
    done = victim.run(["-c", RIGHTS], timeout=300)
    said = ast.literal_eval(done.output)
    assert said["uid"] == 65534
    assert said["capabilities"] == 0
    assert said["no new privileges"] == 1
    assert said["seccomp"] == 2
    assert said["set-uid copy"] == "65534"
    assert said["su"] == ""
    for refused in ("mount", "umount", "remount", "user namespace", "chroot", "setuid", "setgid"):
        assert said[refused] == -1, refused
