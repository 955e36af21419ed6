"""Environments made by the real uv from real indexes: their contents, their leases and their removal."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
import venv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from torchbisect.containers.environment import Environment
from torchbisect.containers.index.indexes import Indexes
from torchbisect.containers.python.interpreter import Interpreter
from torchbisect.containers.store.cache import Cache
from torchbisect.containers.store.disk import folder_size
from torchbisect.containers.venv.environments import VenvEnvironments
from torchbisect.core.build import Build, Channel
from torchbisect.core.errors import DiskFull, InputError, InstallFailed

#: They run uv many times over: too slow for the tier that every change runs, though they need no torch.
pytestmark = pytest.mark.torch

Make = Callable[..., VenvEnvironments]


def test_an_environment_has_the_build_and_reports_it(tree: Any, make: Make, cache: Cache) -> None:
    tree.add("torch", "2.8.0+cpu")
    said: list[str] = []
    venvs = make(tree.url, notify=said.append)
    build = Build("2.8.0")
    assert not venvs.has(build)
    environment: Environment = venvs.environment(build)
    assert environment.build == build
    assert environment.facts.torch == "2.8.0+cpu"
    assert environment.facts.git_version == "c0ffee"
    assert environment.facts.python == ".".join(map(str, sys.version_info[:3]))
    assert said == ["installing torch 2.8.0", "importing torch 2.8.0 for the first time"]
    assert venvs.has(build)
    again = make(tree.url, notify=said.append)
    assert again.environment(build).facts == environment.facts
    assert len(said) == 2
    assert list(cache.unfinished.iterdir()) == []


def test_processes_are_isolated_from_the_users_folders(tree: Any, make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "hush")
    monkeypatch.setenv("PYTHONPATH", "/nowhere")
    tree.add("torch", "2.8.0")
    environment = make(tree.url).environment(Build("2.8.0"))
    code = "import json, os, sys, torch; print(json.dumps([torch.__file__, dict(os.environ), os.getcwd(), sys.argv]))"
    done = environment.run(["-c", code, "an argument"], timeout=30, extra={"MORE": "1"})
    module, variables, folder, argv = json.loads(done.output)
    assert str(environment.python.parent.parent) in module
    assert variables["MORE"] == "1"
    assert "hush" not in variables.values()
    assert "PYTHONPATH" not in variables
    assert variables["HOME"] == variables["TMPDIR"] == folder
    assert not Path(folder).exists()
    assert argv == ["-c", "an argument"]
    process = environment.start(["-c", "import os; print(os.getcwd(), flush=True); input()"])
    line = process.read_line(30)
    assert line
    home = Path(line.decode().strip())
    assert home.is_dir()
    assert home != Path(folder)
    process.kill()
    assert not home.exists()


def test_older_builds_get_their_undeclared_requirements(tree: Any, make: Make) -> None:
    for version in ("2.2.2", "2.6.0", "2.8.0", "2.13.0"):
        tree.add("torch", version)
    venvs = make(tree.url)
    code = "import numpy, setuptools; print(numpy.__version__, setuptools.__version__)"
    got = {
        version: venvs.environment(Build(version)).run(["-c", code], timeout=30).output.split()
        for version in ("2.2.2", "2.6.0", "2.8.0", "2.13.0")
    }
    assert got == {
        "2.2.2": ["1.26.4", "69.5.1"],
        "2.6.0": ["2.1.0", "69.5.1"],
        "2.8.0": ["2.1.0", "80.9.0"],
        "2.13.0": ["2.1.0", "82.0.0"],
    }


def test_the_users_packages_are_installed(tree: Any, make: Make) -> None:
    tree.add("torch", "2.8.0")
    tree.add("einops", "0.8.0", source="__version__ = '0.8.0'\n")
    environment = make(tree.url, packages=["einops==0.8.0"]).environment(Build("2.8.0"))
    assert environment.run(["-c", "import einops; print(einops.__version__)"], timeout=30).output == "0.8.0\n"


def test_a_wheel_is_installed_from_its_own_address(tree: Any, make: Make) -> None:
    wheel = tree.add("torch", "2.9.0.dev20250801+cpu")
    address = wheel.as_uri().replace("+", "%2B")
    environment = make(tree.url).environment(Build("2.9.0.dev20250801", Channel.NIGHTLY, wheel=address))
    assert environment.facts.torch == "2.9.0.dev20250801+cpu"


def test_a_leased_environment_is_not_evicted_and_a_released_one_is(tree: Any, make: Make, cache: Cache) -> None:
    tree.add("torch", "2.8.0")
    first, second = make(tree.url), make(tree.url)
    build = Build("2.8.0")
    first.environment(build)
    first.environment(build)
    second.environment(build)
    key = first.key(build)
    for release in (first.release, first.release, second.release):
        assert not cache.evict(key)
        assert cache.evict_oldest() is False
        release(build)
    assert first.has(build)
    assert cache.evict(key)
    assert not first.has(build)
    assert not cache.evict(key)
    first.release(build)
    assert first.environment(build).facts.torch == "2.8.0"


def test_a_killed_process_leaves_no_lease(tree: Any, make: Make, cache: Cache) -> None:
    tree.add("torch", "2.8.0")
    venvs = make(tree.url)
    venvs.environment(Build("2.8.0"))
    key = venvs.key(Build("2.8.0"))
    code = (
        "import sys; from pathlib import Path; from torchbisect.containers.store.cache import Cache\n"
        "lease = Cache(Path(sys.argv[1])).lease_lock(sys.argv[2]); lease.acquire()\n"
        "print('leased', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", code, str(cache.root), key]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"leased\n"
        venvs.release(Build("2.8.0"))
        assert not cache.evict(key)
        other.kill()
    assert cache.evict(key)


def test_concurrent_requests_share_one_install(tree: Any, make: Make) -> None:
    tree.add("torch", "2.8.0")
    said: list[str] = []
    crowd = [make(tree.url, notify=said.append) for _ in range(4)]
    found: list[str] = []
    threads = [
        threading.Thread(target=lambda one=one: found.append(one.environment(Build("2.8.0")).facts.torch))  # type: ignore[misc]
        for one in crowd
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert found == ["2.8.0"] * 4
    assert said.count("installing torch 2.8.0") == 1


def test_prefetch_installs_and_does_not_report_failures(tree: Any, make: Make, cache: Cache) -> None:
    tree.add("torch", "2.8.0")
    venvs = make(tree.url)
    venvs.prefetch(Build("2.8.0"), threading.Event())
    assert venvs.has(Build("2.8.0"))
    venvs.prefetch(Build("2.9.0"), threading.Event())
    assert not venvs.has(Build("2.9.0"))
    assert cache.evict(venvs.key(Build("2.8.0")))


def test_prefetch_can_be_cancelled(tree: Any, make: Make, serve_tree: Any, cache: Cache) -> None:
    tree.add("torch", "2.8.0")
    reached, stop = threading.Event(), threading.Event()

    def change(path: str, told: Any) -> Any:
        if path.endswith(".whl"):
            reached.set()
            stop.wait(30)
        return told

    venvs = make(f"{serve_tree(tree, change).url}/simple")
    cancel = threading.Event()
    fetching = threading.Thread(target=venvs.prefetch, args=(Build("2.8.0"), cancel))
    fetching.start()
    assert reached.wait(30)
    cancel.set()
    fetching.join(timeout=10)
    assert not fetching.is_alive()
    stop.set()
    assert not venvs.has(Build("2.8.0"))
    assert list(cache.unfinished.iterdir()) == []


def test_room_is_made_by_removing_the_environment_unused_longest(tree: Any, make: Make, cache: Cache) -> None:
    for minor in (5, 6, 7):
        tree.add("torch", f"2.{minor}.0")
    venvs = make(tree.url)
    builds = [Build(f"2.{minor}.0") for minor in (5, 6, 7)]
    for build in builds:
        venvs.environment(build)
    venvs.close()
    for age, build in zip((10, 30, 20), builds):
        os.utime(cache.venvs / venvs.key(build) / "torchbisect-facts.json", (time.time() - age,) * 2)
    said: list[str] = []
    assert cache.evict_oldest(said.append)
    assert [venvs.has(build) for build in builds] == [True, False, True]
    assert "2.6.0" in said[0]
    with pytest.raises(DiskFull, match="--cache-dir"):
        cache.make_room(10**18)
    assert not any(venvs.has(build) for build in builds)


def test_what_another_build_imported_is_compiled_before_the_first_import(tree: Any, make: Make, cache: Cache) -> None:
    compile_stack = ("torch/_dynamo/__init__.py", "torch/_dynamo/utils.py")
    tree.add("torch", "2.6.0", more={**dict.fromkeys(compile_stack, "VALUE = 1\n"), "torch/never.py": "VALUE = 2\n"})
    listed = cache.root / "compiler-cache" / "installed" / "imported-modules"
    listed.parent.mkdir(parents=True)
    listed.write_text("\n".join((*compile_stack, "torch/gone.py")))
    site = make(tree.url).environment(Build("2.6.0")).python.parents[1]
    compiled = {place.name.partition(".")[0] for place in site.rglob("torch/_dynamo/**/*.pyc")}
    assert compiled == {"__init__", "utils"}
    assert not list(site.rglob("never.*.pyc"))


def test_wheels_that_no_environment_links_are_removed(tree: Any, make: Make, cache: Cache) -> None:
    tree.add("torch", "2.5.0")
    tree.add("torch", "2.6.0")
    venvs = make(tree.url)
    venvs.environment(Build("2.5.0"))
    venvs.environment(Build("2.6.0"))
    assert not cache.remove_unlinked()
    venvs.release(Build("2.5.0"))
    assert cache.evict(venvs.key(Build("2.5.0")))
    assert cache.remove_unlinked()
    assert {name for name in cache.packages() if name.startswith("torch-")} == {"torch-2.6.0"}
    assert not cache.remove_unlinked()
    assert venvs.environment(Build("2.5.0")).facts.torch == "2.5.0", "uv fetches it again"
    assert venvs.environment(Build("2.6.0")).run(["-c", "import torch"], timeout=30).status == 0


def test_unfinished_work_of_dead_runs_is_removed_and_of_living_runs_stays(tree: Any, make: Make, cache: Cache) -> None:
    for name in ("torch-dead", "torch-living", "gone-x"):
        (cache.unfinished / name / "lib").mkdir(parents=True)
        (cache.unfinished / name / "lib" / "file").touch()
    (cache.wheels / ".tmpdead").mkdir()
    with cache.install_lock("torch-living").held():
        cache.sweep()
        assert [place.name for place in cache.unfinished.iterdir()] == ["torch-living"]
    assert not (cache.wheels / ".tmpdead").exists()


def test_a_folder_that_cannot_be_a_cache(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="--cache-dir"):
        Cache(tmp_path / "file")
    with pytest.raises(InputError, match="--cache-dir"):
        Cache("/proc/torchbisect")


def test_an_interpreter_without_torch(tmp_path: Path, cache: Cache, tree: Any) -> None:
    venv.create(tmp_path / "env", symlinks=True, with_pip=False)
    venvs = VenvEnvironments(cache, Interpreter.of(tmp_path / "env"), Indexes(tree.url))
    with pytest.raises(InputError, match="has no torch"):
        venvs.environment(Build("2.8.0", Channel.INSTALLED))
    venvs.close()


def add_large(tree: Any, *versions: str, size: int = 2_000_000) -> list[Build]:
    """Add torches of this many bytes, and return their builds."""
    for version in versions:
        tree.add("torch", version, source=f"BALLAST = {'x' * size!r}\n__version__ = {version!r}\n")
    return [Build(version) for version in versions]


def test_the_cache_stays_within_its_limit_while_a_build_is_installed(tree: Any, make: Make, cache: Cache) -> None:
    builds = add_large(tree, "2.4.0", "2.5.0", "2.6.0", "2.7.0", "2.8.0")
    cache.limit = 12_000_000
    sizes: list[int] = []
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(0.01):
            sizes.append(folder_size(cache.root))

    watching = threading.Thread(target=watch)
    watching.start()
    said: list[str] = []
    venvs = make(tree.url, notify=said.append)
    for build in builds:
        assert venvs.environment(build).facts.torch == build.version
        venvs.release(build)
        time.sleep(0.02)
    ended.set()
    watching.join()
    assert max(sizes) <= cache.limit, "room is made before the install"
    there = [venvs.has(build) for build in builds]
    assert there[-1], there
    assert not there[0], there
    assert any("2.4.0" in line for line in said)


def test_what_is_in_use_stays_and_goes_at_the_end(tree: Any, make: Make, cache: Cache) -> None:
    builds = add_large(tree, "2.5.0", "2.6.0", "2.7.0")
    cache.limit = 3_000_000
    warned: list[str] = []
    venvs = make(tree.url, announce=warned.append)
    for build in builds:
        venvs.environment(build)
    assert all(venvs.has(build) for build in builds)
    assert len([line for line in warned if "over its limit of 3 MB" in line and "--cache-limit" in line]) == 1
    assert len(warned) == 2, "it is said once"
    venvs.close()
    assert folder_size(cache.root) <= cache.limit


def test_the_size_is_said_before_the_first_download(tree: Any, make: Make, cache: Cache, serve_tree: Any) -> None:
    builds = add_large(tree, "2.5.0", "2.6.0")
    served = serve_tree(tree)
    fetched: list[bool] = []

    def announce(text: str) -> None:
        said.append(text)
        fetched.append(any(path.endswith(".whl") for path in served.asked))

    said: list[str] = []
    venvs = make(f"{served.url}/simple", announce=announce)
    for build in builds:
        venvs.environment(build)
    assert len(said) == 1, "once a run"
    assert said[0].startswith("torch 2.5.0 and its requirements: 2 MB to download and "), said
    assert str(cache.root) in said[0]
    assert "--cache-limit" in said[0]
    make(f"{served.url}/simple", announce=announce).environment(builds[0])
    assert len(said) == 1, "what is there is not downloaded"


def test_the_size_counts_a_shared_package_that_is_removed_to_make_room(tree: Any, make: Make, cache: Cache) -> None:
    tree.add("nvidia_lib", "1.0", source=f"BALLAST = {'x' * 3_000_000!r}\n")
    ballast = {"torch/ballast.py": f"BALLAST = {'x' * 4_000_000!r}\n"}
    for version in ("2.5.0", "2.6.0"):
        tree.add("torch", version, requires=("nvidia_lib==1.0",), more=ballast)
    said: list[str] = []
    first = make(tree.url)
    first.environment(Build("2.5.0"))
    first.release(Build("2.5.0"))
    cache.limit = 13_500_000
    venvs = make(tree.url, announce=said.append)
    venvs.environment(Build("2.6.0"))
    assert not venvs.has(Build("2.5.0"))
    assert said[0].startswith("torch 2.6.0 and its requirements: 7 MB to download and "), said


def test_two_installs_at_once_do_not_share_one_room(tree: Any, make: Make, cache: Cache) -> None:
    cache.limit = 10_000_000
    waits: list[str] = []
    with cache.reserved("torch-one", 6_000_000) as one:
        assert one
        assert cache.available() < 4_000_000 + 1
        with cache.reserved("torch-two", 5_000_000, warn=waits.append) as two:
            assert two
            assert "over its limit" in waits[0]
    assert cache.available() > 9_000_000


def test_one_package_is_replaced_in_a_copy_and_the_environment_is_unchanged(tree: Any, make: Make) -> None:
    for version in ("3.4.0", "3.5.0"):
        tree.add("triton", version, source=f"VERSION = {version!r}\n")
    tree.add("torch", "2.8.0", requires=("triton==3.4.0",))
    venvs = make(tree.url)
    said = ["-c", "import triton, torch; print(triton.VERSION, torch.__version__)"]
    with venvs.with_package(Build("2.8.0"), "triton==3.5.0") as environment:
        assert environment.facts.triton == "3.5.0"
        assert environment.run(said, timeout=60).output == "3.5.0 2.8.0\n"
        copy = environment.python
    assert not copy.exists()
    assert venvs.environment(Build("2.8.0")).run(said, timeout=60).output == "3.4.0 2.8.0\n"
    with pytest.raises(InstallFailed), venvs.with_package(Build("2.8.0"), "triton==9.9"):
        pass
