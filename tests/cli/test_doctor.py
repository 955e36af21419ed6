"""A machine that fails: a full disk, an index that does not answer."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler

import pytest
from loopback import listening
from running import COMMAND, Tool

pytestmark = pytest.mark.torch

PAGE = """<!DOCTYPE html><html><body>
<a href="torch-2.7.1-cp{0}-cp{0}-manylinux_2_28_x86_64.whl">torch-2.7.1-cp{0}-cp{0}-manylinux_2_28_x86_64.whl</a>
<a href="torch-2.8.0-cp{0}-cp{0}-manylinux_2_28_x86_64.whl">torch-2.8.0-cp{0}-cp{0}-manylinux_2_28_x86_64.whl</a>
<a href="torch-2.8.0-cp{0}-cp{0}-manylinux_2_28_aarch64.whl">torch-2.8.0-cp{0}-cp{0}-manylinux_2_28_aarch64.whl</a>
<a href="torch-1.13.1-cp36-cp36m-manylinux1_x86_64.whl">torch-1.13.1-cp36-cp36m-manylinux1_x86_64.whl</a>
</body></html>"""


@contextmanager
def index(failures: int) -> Iterator[str]:
    """An index on loopback that answers 503 some times before it serves a page of torch."""
    page = PAGE.format(f"{sys.version_info[0]}{sys.version_info[1]}").encode()
    left = [failures]

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            left[0] -= 1
            known = self.path.rstrip("/") == "/simple/torch"
            self.send_response(503 if left[0] >= 0 else 200 if known else 404)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            if known and left[0] < 0:
                self.wfile.write(page)

        def log_message(self, *_: object) -> None:
            pass

    with listening(Handler) as address:
        yield f"{address}/simple"


def alone(url: str) -> dict[str, str]:
    """Environment variables with which pip and uv know only this index."""
    hidden = ("PIP_", "UV_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(hidden)}
    return {**kept, "PIP_CONFIG_FILE": os.devnull, "UV_DEFAULT_INDEX": url}


def typed(tool: Tool, url: str, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [COMMAND, *words], cwd=tool.folder, env=alone(url), capture_output=True, text=True, timeout=200, check=False
    )


def test_builds_of_an_index_that_fails_at_first(tool: Tool) -> None:
    with index(failures=2) as url:
        done = typed(tool, url, "builds")
    assert done.returncode == 0, done.stderr
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["2.7.1", "2.8.0"]
    assert "1.13.1" in done.stderr
    assert done.stderr.count("503") == 2


def test_a_plan_is_printed_and_nothing_else_happens(tool: Tool) -> None:
    tool.write("import torch\nraise SystemExit('never run')\n")
    before = set(tool.folder.iterdir())
    words = ("bisect", "repro.py", "--torch", "2.8.0", "--find", "regression", "--plan", "--cache-dir", str(tool.cache))
    with index(failures=0) as url:
        done = typed(tool, url, *words)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("releases, 2 builds: ")
    assert "2 steps" in done.stdout
    assert "MB to download" in done.stdout or "GB to download" in done.stdout
    assert "nightlies between two releases" in done.stdout
    assert {place.name for place in set(tool.folder.iterdir()) - before} <= {tool.cache.name}, "no folder of results"
    assert not list(tool.cache.glob("venvs/*"))


def test_a_build_that_does_not_exist(tool: Tool) -> None:
    tool.write("import torch\n")
    with index(failures=0) as url:
        done = typed(tool, url, "run", "repro.py", "--torch", "2.8.1")
    assert done.returncode == 2, done.stderr
    assert "2.8.1" in done.stderr
    assert "2.8.0" in done.stderr


@pytest.mark.long
def test_ends_in_the_wrong_order(tool: Tool) -> None:
    script = (
        "import torch\n"
        "assert not torch.compile(lambda x: torch.compiler.is_compiling(), backend='eager')(torch.ones(1))\n"
    )
    tool.write(script)
    with index(failures=0) as url:
        words = (
            "bisect",
            "repro.py",
            "--find",
            "regression",
            "--bad",
            "2.7.1",
            "--good",
            "2.8.0",
            "--torch",
            "installed",
        )
        done = typed(tool, url, *words)
    assert done.returncode == 2, done.stderr
    assert "2.8.0" in done.stderr
    assert "2.7.1" in done.stderr


@pytest.mark.long
@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small filesystem needs root")
def test_a_full_disk(tool: Tool) -> None:
    small = tool.folder / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", small], check=True)
    try:
        (small / "filler").write_bytes(b"x" * 40_000)
        script = tool.write("import torch\nprint(torch.compile(lambda x: x, backend='eager')(torch.ones(9)))\n" * 200)
        done = tool.run("check", script, "--out", str(small / "out"))
        assert done.returncode == 5, done.stderr
        assert "full" in done.stderr
        assert "Traceback" not in done.stderr
        (small / "filler").unlink()
        subprocess.run(["mount", "-o", "remount,size=64m", small], check=True)
        assert tool.run("check", script, "--out", str(small / "out")).returncode == 1
    finally:
        subprocess.run(["umount", "-l", small], check=True)
