"""Partial wheels over HTTP, and overlays over hard-linked copies of virtual environments."""

from __future__ import annotations

import io
import os
import random
import subprocess
import sys
import time
import venv
import zipfile
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from loopback import listening

from torchbisect.bisect.sources.partial_wheel import fetch_python_files, partial_wheel_environment, python_difference
from torchbisect.containers.environment import Facts, Venv
from torchbisect.containers.store.cache import Cache
from torchbisect.containers.venv.copies import overlaid_environment
from torchbisect.core.build import Build, Channel
from torchbisect.core.errors import IndexUnreachable, InstallFailed, MachineError
from torchbisect.core.retry import RetryPolicy

Serve = Callable[[dict[str, "str | bytes | int"]], tuple[str, list[str]]]
SHORT_RETRY = RetryPolicy(first_wait=0.01, longest_wait=0.01, total=0.05)


def archive(files: dict[str, bytes]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, contents in files.items():
            wheel.writestr(name, contents)
    return made.getvalue()


def random_bytes(count: int, seed: int) -> bytes:
    return random.Random(seed).randbytes(count)


def test_only_the_python_files_and_the_directory_are_fetched(serve: Serve) -> None:
    files = {
        "torch/lib/libtorch.so": random_bytes(3_000_000, 1),
        "torch/_dynamo/a.py": b"a = 1\n",
        "torch/_dynamo/b.py": b"b = 1\n",
        "torch/lib/libshm.so": random_bytes(1_000_000, 2),
        "torch/version.py": b"__version__ = '2.15.0'\n",
        "torch/_inductor/c.py": b"c = 1\n",
        "torch/lib/libend.so": random_bytes(3_000_000, 3),
    }
    address, requests = serve({"/torch.whl": archive(files)})
    wheel = fetch_python_files(f"{address}/torch.whl")
    assert wheel.files == {
        name: files[name] for name in ("torch/_dynamo/a.py", "torch/_dynamo/b.py", "torch/_inductor/c.py")
    }
    assert wheel.names == frozenset(files)
    assert wheel.fetched < 1_650_000
    assert len(requests) == 3


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=15)
@given(
    st.dictionaries(
        st.sampled_from([f"torch/{name}{suffix}" for name in "abcdef" for suffix in (".py", ".so")]),
        st.binary(max_size=400),
    )
)
def test_fetched_files_equal_those_in_the_wheel(serve: Serve, files: dict[str, bytes]) -> None:
    address, _ = serve({"/torch.whl": archive(files)})
    wheel = fetch_python_files(f"{address}/torch.whl")
    assert wheel.files == {name: contents for name, contents in files.items() if name.endswith(".py")}


def test_a_wheel_that_cannot_be_read_in_parts_is_reported(serve: Serve) -> None:
    address, _ = serve({"/text.whl": b"no archive" * 99, "/busy.whl": 503})
    with pytest.raises(InstallFailed) as refused:
        fetch_python_files(f"{address}/text.whl")
    assert refused.value.reason == "bad-wheel"
    with pytest.raises(InstallFailed) as refused:
        fetch_python_files(f"{address}/gone.whl")
    assert refused.value.reason == "no-ranges"
    with pytest.raises(IndexUnreachable):
        fetch_python_files(f"{address}/busy.whl", retry=SHORT_RETRY)


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


@pytest.fixture
def base(tmp_path: Path, cache: Cache) -> Venv:
    """A virtual environment with a package named torch that has a version."""
    place = cache.venvs / "base"
    venv.create(place, with_pip=False, symlinks=True)
    site = next(place.glob("lib/python3*/site-packages"))
    (site / "torch/_dynamo").mkdir(parents=True)
    (site / "torch/__init__.py").write_text("from torch._dynamo.a import a\nfrom torch.version import *\n")
    (site / "torch/version.py").write_text("__version__ = '2.15.0'\ngit_version = 'old'\n")
    (site / "torch/_dynamo/__init__.py").write_text("")
    (site / "torch/_dynamo/a.py").write_text("a = 1\n")
    (site / "torch/_dynamo/unused.py").write_text("")
    (site / "torch/lib.so").write_bytes(b"binary")
    (site / "linked").symlink_to("torch")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run([place / "bin/python", "-c", "import torch"], check=True, env=environment)
    facts = Facts("2.15.0", "old", "3", "here")
    return Venv(Build("2.15.0", Channel.NIGHTLY), facts, place / "bin/python", tmp_path)


def torch_of(environment: Venv) -> str:
    code = "import torch; print(torch.a, torch.git_version, torch.__file__)"
    done = subprocess.run([environment.python, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_an_overlay_changes_the_copy_and_not_the_original(base: Venv, cache: Cache) -> None:
    layer = {"torch/_dynamo/a.py": b"a = 2\n", "torch/_dynamo/unused.py": None, "torch/_dynamo/new/b.py": b""}
    with overlaid_environment(cache, base, layer, "c0ffee" * 6) as made:
        copy = made.python.parents[1]
        assert torch_of(made) == f"2 {'c0ffee' * 6} {next(copy.glob('lib/python3*'))}/site-packages/torch/__init__.py"
        assert torch_of(base).startswith("1 old ")
        site = next(copy.glob("lib/python3*/site-packages"))
        assert not (site / "torch/_dynamo/unused.py").exists()
        assert (site / "torch/_dynamo/new/b.py").exists()
        assert os.path.samefile(site / "torch/lib.so", next(base.python.parents[1].glob("lib/*/*/torch/lib.so")))
        assert (made.build.commit, made.facts.git_version) == ("c0ffee" * 6, "c0ffee" * 6)
        cache.sweep()
        assert torch_of(made).startswith("2 "), "another run does not remove an environment in use"
    assert not copy.exists()
    assert torch_of(base).startswith("1 old ")


def test_leftovers_of_a_killed_run_are_removed(base: Venv, cache: Cache) -> None:
    with overlaid_environment(cache, base, {}, "c0ffee") as made:
        name = made.python.parents[1].name
    (cache.unfinished / name / "torch").mkdir(parents=True)
    with overlaid_environment(cache, base, {"torch/_dynamo/a.py": b"a = 4\n"}, "c0ffee") as made:
        assert torch_of(made).startswith("4 ")
    (cache.unfinished / name).mkdir()
    cache.sweep()
    assert list(cache.unfinished.iterdir()) == []


def test_a_folder_that_is_no_virtual_environment_is_rejected(tmp_path: Path, cache: Cache) -> None:
    there = Venv(Build("2.15.0"), Facts("2.15.0", None, "3", "here"), Path(sys.base_prefix) / "bin/python3", tmp_path)
    with pytest.raises(MachineError, match="no virtual environment"), overlaid_environment(cache, there, {}, "c0ffee"):
        raise AssertionError
    assert list(cache.unfinished.iterdir()) == []


def test_the_python_difference_has_the_files_that_differ(base: Venv, cache: Cache, serve: Serve) -> None:
    site = next(base.python.parents[1].glob("lib/python3*/site-packages"))
    files = {
        "torch/__init__.py": (site / "torch/__init__.py").read_bytes(),
        "torch/_dynamo/__init__.py": b"",
        "torch/_dynamo/a.py": b"a = 3\n",
        "torch/_dynamo/more.py": b"more = 1\n",
        "torch/version.py": b"git_version = 'new'\n",
    }
    address, _ = serve({"/torch.whl": archive(files)})
    assert python_difference(fetch_python_files(f"{address}/torch.whl"), site) == {
        "torch/_dynamo/a.py": b"a = 3\n",
        "torch/_dynamo/more.py": b"more = 1\n",
        "torch/_dynamo/unused.py": None,
    }
    build = Build("2.15.0.dev20260816+cpu", Channel.NIGHTLY)
    with partial_wheel_environment(cache, build, f"{address}/torch.whl", base) as (made, fetched):
        assert fetched == len(archive(files))
        assert (made.build, made.facts.torch) == (build, build.version)
        assert made.facts.git_version == f"{build.version} over 2.15.0", (
            "without a git version the build's version is used"
        )
        assert torch_of(made).startswith(f"3 {build.version} over 2.15.0")


def _ranges(change: Callable[[bytes, int, int], tuple[bytes, str]]) -> type[BaseHTTPRequestHandler]:
    """Return a server of one wheel that ``change`` answers: the wheel and a range to a body and a Content-Range."""
    wheel = archive({f"torch/{name}.py": b"x = 1\n" * 99 for name in "abc"})

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            first, _, last = self.headers["Range"].removeprefix("bytes=").partition("-")
            start = int(first) if first else max(len(wheel) - int(last), 0)
            stop = min(int(last) + 1, len(wheel)) if first and last else len(wheel)
            body, told = change(wheel, start, stop)
            self.send_response(206)
            self.send_header("Content-Range", told)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments: object) -> None:
            pass

    return Handler


LIES = {
    "nothing": lambda wheel, a, b: (b"", f"bytes {a}-{b - 1}/{len(wheel)}"),
    "elsewhere": lambda wheel, a, b: (wheel[:10], f"bytes 0-9/{len(wheel)}"),
    "huge": lambda wheel, a, b: (wheel[a:b], f"bytes {a}-{b - 1}/999999999999999"),
    "digits": lambda wheel, a, b: (wheel[a:b], f"bytes {a}-{b - 1}/{'9' * 5000}"),
    "other-digits": lambda wheel, a, b: (wheel[a:b], f"bytes {a}-{b - 1}/²"),
    "too-much": lambda wheel, a, b: (wheel[a:b] * 2, f"bytes {a}-{b - 1}/{len(wheel)}"),
    "star": lambda wheel, a, b: (wheel[a:b], f"bytes {a}-{b - 1}/*"),
    "noise": lambda wheel, a, b: (b"\xff" * (b - a), f"bytes {a}-{b - 1}/{len(wheel)}"),
    "end-only": lambda wheel, a, b: (wheel[-22:], f"bytes {len(wheel) - 22}-{len(wheel) - 1}/{len(wheel)}"),
}


@pytest.mark.parametrize("change", LIES.values(), ids=LIES)
def test_a_host_that_sends_other_bytes(change: Callable[[bytes, int, int], tuple[bytes, str]]) -> None:
    with listening(_ranges(change)) as address:
        started = time.monotonic()
        with pytest.raises((InstallFailed, IndexUnreachable)):
            fetch_python_files(f"{address}/torch.whl", retry=SHORT_RETRY)
        assert time.monotonic() - started < 20


def _bomb(size: int, packing: int) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", packing) as file:
        file.writestr("torch/a.py", b"\0" * size)
    return data.getvalue()


@pytest.mark.slow
@pytest.mark.parametrize(("size", "packing"), [(300 << 20, zipfile.ZIP_DEFLATED), (9, zipfile.ZIP_BZIP2), (9, 14)])
def test_files_that_unpack_to_too_much(serve: Serve, size: int, packing: int) -> None:
    address, _ = serve({"/torch.whl": _bomb(size, packing)})
    with pytest.raises(InstallFailed) as refused:
        fetch_python_files(f"{address}/torch.whl")
    assert refused.value.reason == "bad-wheel"


def test_a_directory_that_names_bytes_before_the_file(serve: Serve) -> None:
    data = bytearray(archive({"torch/a.py": b"a = 1\n", "torch/b.py": b"b = 2\n"}))
    place = data.rindex(b"PK\5\6") + 16
    data[place : place + 4] = (int.from_bytes(data[place : place + 4], "little") + 5).to_bytes(4, "little")
    address, requests = serve({"/torch.whl": bytes(data)})
    with pytest.raises(InstallFailed) as refused:
        fetch_python_files(f"{address}/torch.whl", retry=SHORT_RETRY)
    assert refused.value.reason == "bad-wheel"
    assert len(requests) == 1


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
@given(st.lists(st.tuples(st.integers(0, 400), st.binary(min_size=1, max_size=4)), min_size=1, max_size=4))
def test_a_damaged_wheel_is_a_bad_one(serve: Serve, changes: list[tuple[int, bytes]]) -> None:
    data = bytearray(archive({"torch/a.py": b"a = 1\n" * 9, "torch/b.py": b"b = 2\n"}))
    for place, part in changes:
        data[place : place + len(part)] = part
    address, _ = serve({"/torch.whl": bytes(data)})
    with suppress(InstallFailed):
        fetch_python_files(f"{address}/torch.whl", retry=SHORT_RETRY)
