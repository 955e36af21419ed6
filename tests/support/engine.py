"""A real container engine: the one that runs here, or one started for the tests, with a base image made on the spot."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import docker
import docker.errors
import platformdirs
import pytest
from filelock import FileLock

from torchbisect.containers.docker.engine import Engine
from torchbisect.containers.docker.images import build_image

#: Podman imports with the tag "latest" whatever is asked, and looks for a name without a host in registries only.
BASE = "localhost/torchbisect-test-bookworm:latest"
#: What a base image needs so that torchbisect's own image is built on it without a network.
PACKAGES = "python3,python3-dev,g++,ca-certificates"


def answers() -> bool:
    """Return true if an engine answers at the address that the environment names."""
    try:
        client = docker.from_env(timeout=5)
        client.ping()
        client.close()
    except (docker.errors.DockerException, OSError):
        return False
    return True


@pytest.fixture(scope="session")
def engine_host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of an engine with the base image in it; ``DOCKER_HOST`` names it meanwhile."""
    if answers():
        make_base()
        yield os.environ.get("DOCKER_HOST", "")
        return
    program = shutil.which("dockerd")
    if program is None or os.geteuid() != 0:
        pytest.skip("no container engine answers, and none can be started: install docker.io and debootstrap as root")
    place = tmp_path_factory.mktemp("engine", numbered=True)
    address = f"unix://{place}/docker.sock"
    command = [program, "--host", address, "--data-root", f"{place}/data", "--exec-root", f"{place}/exec"]
    with open(place / "log", "wb") as log, pytest.MonkeyPatch.context() as patch:
        patch.setenv("DOCKER_HOST", address)
        # Without a bridge two engines live beside each other; what needs a network is given this machine's.
        command += ["--pidfile", f"{place}/pid", "--bridge", "none", "--iptables=false", "--ip6tables=false"]
        engine = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        try:
            until = time.monotonic() + 60
            while not answers():
                assert engine.poll() is None, (place / "log").read_text()[-2000:]
                assert time.monotonic() < until, "the engine did not start in a minute"
                time.sleep(0.1)
            make_base()
            yield address
        finally:
            engine.terminate()
            engine.wait(timeout=60)
            subprocess.run(["umount", f"{place}/exec/netns/default"], capture_output=True, check=False)
            shutil.rmtree(place, ignore_errors=True)


def make_base() -> None:
    """Have the base image in the engine; ``debootstrap`` makes its files once for this machine."""
    client = docker.from_env(timeout=600)
    try:
        try:
            client.images.get(BASE)
            return
        except docker.errors.ImageNotFound:
            pass
        packed = platformdirs.user_cache_path("torchbisect-tests", ensure_exists=True) / "base-bookworm.tar"
        with FileLock(packed.with_suffix(".lock")):
            if not packed.exists():
                debootstrap(packed)
        name, _, tag = BASE.partition(":")
        client.api.import_image_from_file(str(packed), repository=name, tag=tag)
    finally:
        client.close()


def debootstrap(packed: Path) -> None:
    """Make a Debian with Python and a compiler, as an archive of its files."""
    program = shutil.which("debootstrap")
    if program is None:
        pytest.skip("there is no debootstrap to make a base image with: install it")
    place = Path(tempfile.mkdtemp(prefix="base-", dir=packed.parent))
    root, partial = place / "root", place / "packed"
    try:
        command = [program, "--variant=minbase", f"--include={PACKAGES}", "bookworm", str(root)]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        assert done.returncode == 0, done.stdout[-2000:]
        for waste in ("usr/share/doc", "usr/share/man", "usr/share/locale", "var/cache/apt", "var/lib/apt/lists"):
            shutil.rmtree(root / waste, ignore_errors=True)
        subprocess.run(["tar", "-C", str(root), "-cf", str(partial), "."], check=True)
        partial.rename(packed)
    finally:
        subprocess.run(["umount", "--quiet", root / "proc", root / "sys"], capture_output=True, check=False)
        shutil.rmtree(place, ignore_errors=True)


@pytest.fixture(scope="session")
def own_image(engine_host: str) -> str:
    """torchbisect's own image for the CPU, built on the base of the tests."""
    engine = Engine()
    try:
        return build_image(engine, "cpu", base=BASE)
    finally:
        engine.close()
