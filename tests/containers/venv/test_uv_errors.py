"""Errors of the real uv, told apart by cause: the build, the user, the network or the disk."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest

from torchbisect.containers.store.cache import Cache
from torchbisect.containers.venv.environments import VenvEnvironments
from torchbisect.core.build import Build
from torchbisect.core.errors import IndexUnreachable, InputError, InstallFailed, TorchbisectError
from torchbisect.core.retry import RetryPolicy

#: They run uv many times over: too slow for the tier that every change runs, though they need no torch.
pytestmark = pytest.mark.torch

Make = Callable[..., VenvEnvironments]

REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "another platform": ({"tag": "cp311-cp311-win_amd64"}, "no-wheel"),
    "another Python": ({"tag": "cp38-cp38-manylinux_2_17_x86_64"}, "no-wheel"),
    "an unknown ABI": ({"tag": "cp399-cp399-linux_x86_64"}, "no-wheel"),
    "a newer glibc": ({"tag": "py3-none-manylinux_2_99_x86_64"}, "no-wheel"),
    "a newer Python": ({"python": ">=3.99", "attributes": 'data-requires-python="&gt;=3.99"'}, "no-wheel"),
    "a requirement that isn't there": ({"requires": ("nosuch>=1",)}, "dependency-missing"),
    "a requirement too new": ({"requires": ("numpy>99",)}, "dependency-missing"),
    "a wheel that was taken away": ({"present": False}, "wheel-gone"),
    "an import that fails": ({"source": "import nosuchmodule\n"}, "import-failed"),
    "an import that dies": ({"source": "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)\n"}, "import-failed"),
    "an import that only says so": ({"source": "import os; os._exit(0)\n"}, "import-failed"),
    "another version": ({"source": "__version__ = '2.7.9'\n"}, "other-version"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_build_that_cannot_be_installed_has_a_named_reason(case: str, tree: Any, make: Make, cache: Cache) -> None:
    options, reason = REFUSED[case]
    tree.add("torch", "2.8.0", **options)
    tree.add("torch", "2.7.0")
    venvs = make(tree.url)
    with pytest.raises(InstallFailed) as caught:
        venvs.environment(Build("2.8.0"))
    assert caught.value.reason == reason
    assert "2.8.0" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not venvs.has(Build("2.8.0"))
    assert list(cache.unfinished.iterdir()) == []
    assert venvs.environment(Build("2.7.0")).facts.torch == "2.7.0"


def test_a_version_missing_from_the_index(tree: Any, make: Make) -> None:
    tree.add("torch", "2.8.0")
    with pytest.raises(InstallFailed, match=r"torch 2\.9\.0 isn't in the index") as caught:
        make(tree.url).environment(Build("2.9.0"))
    assert caught.value.reason == "no-such-build"


def test_a_withdrawn_build_is_still_installed(tree: Any, make: Make) -> None:
    """Installers take a yanked file only for an exact pin (PEP 592), as a bisection needs."""
    tree.add("torch", "2.8.0", attributes='data-yanked="a bad release"')
    assert make(tree.url).environment(Build("2.8.0")).facts.torch == "2.8.0"


def test_conflicting_requirements_of_the_user(tree: Any, make: Make) -> None:
    tree.add("torch", "2.8.0")
    tree.add("needy", "1.0", source="", requires=("torch>=2.9",))
    with pytest.raises(InstallFailed) as caught:
        make(tree.url, packages=["needy"]).environment(Build("2.8.0"))
    assert caught.value.reason == "dependency-conflict"


def test_a_missing_package_of_the_user_is_an_input_error(tree: Any, make: Make) -> None:
    tree.add("torch", "2.8.0")
    with pytest.raises(InputError, match="--with no-such-thing"):
        make(tree.url, packages=["no_such.thing>=1"]).environment(Build("2.8.0"))


def test_an_index_without_torch_is_not_the_builds_fault(tree: Any, make: Make) -> None:
    with pytest.raises(IndexUnreachable, match="no torch at all"):
        make(tree.url).environment(Build("2.8.0"))


def test_a_wheel_that_is_no_archive(tree: Any, make: Make) -> None:
    tree.add("torch", "2.8.0").write_bytes(b"nonsense")
    with pytest.raises(TorchbisectError) as caught:
        make(tree.url).environment(Build("2.8.0"))
    assert isinstance(caught.value, InstallFailed)
    assert caught.value.reason == "broken-wheel"


@pytest.mark.parametrize("trouble", ["page 503", "page cut", "wheel 503", "wheel cut", "wheel 500"])
def test_temporary_network_failures_are_retried(
    tree: Any, make: Make, serve_tree: Any, answer: Any, trouble: str
) -> None:
    what, how = trouble.split()
    left = [8]  # the size of the install is asked for first, and that is not tried again

    def change(path: str, told: Any) -> Any:
        wanted = path.endswith(".whl") and "torch" in path if what == "wheel" else path.endswith("/torch/")
        if not wanted or not left[0]:
            return told
        left[0] -= 1
        return answer(int(how)) if how != "cut" else answer(body=told.body[:30], length=len(told.body), kind=told.kind)

    tree.add("torch", "2.8.0")
    said: list[str] = []
    served = serve_tree(tree, change)
    venvs = make(f"{served.url}/simple", notify=said.append, retry=RetryPolicy(0.01, 0.01, 60.0))
    assert venvs.environment(Build("2.8.0")).facts.torch == "2.8.0"
    assert any("next try" in line for line in said)


@pytest.mark.parametrize("status", [500, 503, 401, 403])
def test_an_index_that_stays_down_is_not_the_builds_fault(
    tree: Any, make: Make, serve_tree: Any, answer: Any, status: int
) -> None:
    served = serve_tree(tree, lambda path, told: answer(status))
    url = served.url.replace("//", "//somebody:hush@")
    with pytest.raises(IndexUnreachable) as caught:
        make(f"{url}/simple").environment(Build("2.8.0"))
    assert "hush" not in str(caught.value)


def can_mount() -> bool:
    command = ["unshare", "--user", "--map-root-user", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


FULL = """
import sys
from torchbisect.core.build import Build
from torchbisect.containers.store.cache import Cache
from torchbisect.core.errors import TorchbisectError
from torchbisect.containers.index.indexes import Indexes
from torchbisect.containers.python.interpreter import Interpreter
from torchbisect.containers.venv.environments import VenvEnvironments
try:
    cache = Cache("/mnt/cache")
    with open("/mnt/ballast", "wb") as ballast:
        ballast.write(bytes(cache.free() - int(sys.argv[2])))
    venvs = VenvEnvironments(cache, Interpreter.of(sys.executable), Indexes(sys.argv[1]), notify=print)
    venvs.environment(Build("2.8.0"))
except TorchbisectError as error:
    print(type(error).__name__, error)
"""


@pytest.mark.skipif(not can_mount(), reason="this machine lets nobody but root mount a small disk to fill")
@pytest.mark.parametrize("left", [4096, 200_000, 600_000, 1_200_000])
def test_a_full_disk_is_not_the_builds_fault(tree: Any, serve_tree: Any, left: int) -> None:
    """A small disk is full before the environment is made, during that, or while wheels are unpacked."""
    # What the torch needs is unpacked before the disk is full: to give that back makes no room for a second try.
    tree.add("weights", "1.0", source=f"DATA = '{'x' * 300_000}'\n")
    source = f"__version__ = '2.8.0'\nDATA = '{'x' * 3_000_000}'\n"
    tree.add("torch", "2.8.0", source=source, requires=("weights==1.0",))

    def torch_comes_last(path: str, told: Any) -> Any:
        time.sleep(0.5 if "/torch-" in path and path.endswith(".whl") else 0)
        return told

    code = [sys.executable, "-c", FULL, f"{serve_tree(tree, torch_comes_last).url}/simple", str(left)]
    shell = 'mount -t tmpfs -o size=2m tmpfs /mnt && exec "$@"'
    command = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", shell, "sh", *code]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.stdout.splitlines()[-1].startswith("DiskFull"), done.stdout + done.stderr
    assert "--cache-dir" in done.stdout
