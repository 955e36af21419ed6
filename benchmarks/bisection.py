"""Benchmark of a bisection against the loop that people write by hand.

    python benchmarks/bisection.py SCRIPT --good BUILD --bad BUILD [--channel nightly] [--index-url URL] [--keep FOLDER]

The figures are ratios of runs on one machine. The loop is a binary search that trusts the two ends. For each build it
makes a fresh virtual environment, runs ``pip install torch==BUILD``, and reads the script's exit status; a second loop
does so with uv and its cache. torchbisect searches the same range with an empty cache, and then again with the cache of
that run. All install through a server on loopback that counts the bytes of every file. Further indexes of the
configuration serve them without being counted. SCRIPT must exit with a status other than 0 where it fails.

A module named ``bisect.py`` would hide that of the standard library from every benchmark in this folder.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

import httpx
from packaging.version import Version

from torchbisect.bisect.sources import nightly, release
from torchbisect.containers.index.indexes import Indexes
from torchbisect.containers.index.pages import new_client, packages, project_page
from torchbisect.containers.python.interpreter import Interpreter
from torchbisect.containers.venv.installer import find_uv
from torchbisect.core.build import Build

Install = Callable[[Path, list[str], list[str]], str]
COMMAND = Path(sys.executable).with_name("torchbisect")
_CHUNK = 1 << 20


@dataclass(frozen=True)
class Cost:
    """The cost and the result of one bisection.

    Attributes:
        seconds: wall time.
        downloaded: bytes of wheels and their metadata.
        installs: the number of environments with a torch that were made.
        answer: the two builds between which the answer changes.
    """

    seconds: float
    downloaded: int
    installs: int
    answer: tuple[str, str]


class CountingIndex:
    """A proxy of an index that counts the bytes fetched of each file.

    Attributes:
        url: its address, as an index.
        served: bytes by file name.
    """

    def __init__(self, upstream: str) -> None:
        self._upstream = upstream.rstrip("/")
        self._files: dict[str, str] = {}
        self._client = new_client()
        self._lock = threading.Lock()
        self.served: Counter[str] = Counter()
        self._path = urlsplit(self._upstream).path.rstrip("/") or "/simple"
        counted = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                counted.answer(self)

            do_HEAD = do_GET

            def log_message(self, *_: object) -> None:
                """Print nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}{self._path}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._client.close()

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        path = unquote(request.path).rstrip("/")
        if path.startswith("/files/"):
            return self._file(request, path.removeprefix("/files/"))
        return self._respond(request, *self._page(path.removeprefix(self._path).strip("/")))

    def _page(self, project: str) -> tuple[int, bytes]:
        page = project_page(self._upstream, project, client=self._client) if project else None
        if page is None:
            return 404, b""
        lines = []
        for package in page.packages:
            with self._lock:
                self._files[package.filename] = package.url
            digest = package.digests.get("sha256")
            python = (package.requires_python or "").replace("<", "&lt;").replace(">", "&gt;")
            lines.append(
                f'<a href="/files/{quote(package.filename)}{f"#sha256={digest}" if digest else ""}"'
                + (f' data-requires-python="{python}"' if python else "")
                + (' data-yanked=""' if package.is_yanked else "")
                + (' data-core-metadata="true"' if package.has_metadata else "")
                + f">{package.filename}</a><br/>"
            )
        return 200, ("<!DOCTYPE html>\n<html><body>\n" + "\n".join(lines) + "\n</body></html>").encode()

    def _file(self, request: BaseHTTPRequestHandler, name: str) -> None:
        url = self._files.get(name.removesuffix(".metadata"))
        if url is None:
            return self._respond(request, 404, b"")
        url += ".metadata" if name.endswith(".metadata") else ""
        asked = {"Range": request.headers["Range"]} if "Range" in request.headers else {}
        with self._client.stream(request.command, url, headers={**asked, "Accept-Encoding": "identity"}) as response:
            request.send_response(response.status_code)
            for header in ("Content-Length", "Content-Range", "Accept-Ranges", "Content-Type"):
                if header in response.headers:
                    request.send_header(header, response.headers[header])
            request.end_headers()
            try:
                for chunk in response.iter_raw(_CHUNK) if request.command == "GET" else ():
                    with self._lock:
                        self.served[name] += len(chunk)
                    request.wfile.write(chunk)
            except (OSError, httpx.HTTPError):
                request.close_connection = True
        return None

    def _respond(self, request: BaseHTTPRequestHandler, status: int, body: bytes) -> None:
        request.send_response(status)
        request.send_header("Content-Type", "text/html")
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        if request.command == "GET":
            request.wfile.write(body)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("script", type=Path)
    parser.add_argument("--good", required=True)
    parser.add_argument("--bad", required=True)
    parser.add_argument("--channel", choices=("release", "nightly"), default="release")
    parser.add_argument("--index-url")
    parser.add_argument("--keep", type=Path, help="leave the last run's results here")
    options = parser.parse_args(arguments)
    index = CountingIndex(options.index_url or Indexes.from_configuration().index_url)
    with tempfile.TemporaryDirectory(prefix="torchbisect-benchmark-") as temporary:
        folder = Path(temporary)
        builds = _builds_between(options, index.url)
        print(f"{len(builds)} builds from {builds[0]} to {builds[-1]}", flush=True)
        costs: dict[str, Cost] = {}
        for name, install in (("the loop", _install_with_pip), ("the loop, with uv", _install_with_uv)):
            loop = folder / f"loop {len(costs)}"
            costs[name] = _measure(
                index, lambda loop=loop, install=install: _bisect_by_hand(builds, options, loop, index.url, install)
            )
            _print_cost(name, costs[name], costs["the loop"])
        for name in ("torchbisect, empty cache", "torchbisect, warm cache"):
            out = folder / name.partition(", ")[2].replace(" ", "-")
            costs[name] = _measure(
                index, lambda out=out: _bisect_with_torchbisect(options, folder / "cache", out, index.url)
            )
            _print_cost(name, costs[name], costs["the loop"])
        if options.keep:
            shutil.copytree(out, options.keep, dirs_exist_ok=True)
    index.close()
    return 0 if len({cost.answer for cost in costs.values()}) == 1 else 1


def _builds_between(options: argparse.Namespace, url: str) -> list[Build]:
    """Return the builds between the two ends, oldest first; both bisections search these."""
    interpreter = Interpreter.of(sys.executable)
    if options.channel == "nightly":
        page = project_page(url, "torch")
        listed = nightly.nightlies(page.packages if page else [], interpreter, url.rpartition("/")[2]).builds
    else:
        listed = release.releases(packages(Indexes.from_configuration(url), "torch"), interpreter).builds
    names = [build.name for build in listed]
    ends = sorted(names.index(end) for end in (options.good, options.bad))
    return list(listed[ends[0] : ends[1] + 1])


def _measure(index: CountingIndex, bisect: Callable[[], tuple[int, tuple[str, str]]]) -> Cost:
    before, began = index.served.total(), time.monotonic()
    installs, answer = bisect()
    return Cost(time.monotonic() - began, index.served.total() - before, installs, answer)


def _bisect_by_hand(
    builds: list[Build], options: argparse.Namespace, folder: Path, url: str, install: Install
) -> tuple[int, tuple[str, str]]:
    """Bisect by the exit status alone, as people do by hand; every failure counts as the bug."""
    low, high, installs = 0, len(builds) - 1, 0
    older_fails = builds[0].name == options.bad
    others = Indexes.from_configuration().urls if options.channel == "nightly" else ()
    while high - low > 1:
        middle = (low + high) // 2
        python = install(folder, [f"torch=={builds[middle].version}", "numpy"], [url, *others])
        installs += 1
        fails = subprocess.run([python, str(options.script)], capture_output=True, check=False).returncode != 0
        shutil.rmtree(folder)
        low, high = (middle, high) if fails is older_fails else (low, middle)
    return installs, (builds[low].name, builds[high].name)


def _install_with_pip(folder: Path, requirements: list[str], indexes: list[str]) -> str:
    """Make a fresh environment with pip, which keeps what it fetched; return its Python."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    python = str(folder / "bin" / "python")
    # A constraint in this machine's configuration may pin torch, so no configuration is read; all indexes are named.
    unpinned = {**os.environ, "PIP_CONFIG_FILE": os.devnull}
    where = ["--index-url", indexes[0], *(word for url in indexes[1:] for word in ("--extra-index-url", url))]
    pip = [python, "-m", "pip", "install", "--quiet", "--cache-dir", str(folder.with_name("pip"))]
    subprocess.run([*pip, *requirements, *where], check=True, env=unpinned)
    return python


def _install_with_uv(folder: Path, requirements: list[str], indexes: list[str]) -> str:
    """Make a fresh environment with uv, whose files are links into its cache; return its Python."""
    uv = [find_uv(), "--quiet", "--no-config", "--cache-dir", str(folder.with_name("uv"))]
    subprocess.run([*uv, "venv", "--python", sys.executable, str(folder)], check=True)
    python = str(folder / "bin" / "python")
    where = ["--default-index", indexes[0], *(word for url in indexes[1:] for word in ("--index", url))]
    where += ["--index-strategy", "unsafe-best-match"]
    subprocess.run([*uv, "pip", "install", "--python", python, *requirements, *where], check=True)
    return python


def _bisect_with_torchbisect(
    options: argparse.Namespace, cache: Path, out: Path, url: str
) -> tuple[int, tuple[str, str]]:
    there = set(cache.glob("venvs/*"))
    arguments = ["run" if options.channel == "nightly" else "bisect", str(options.script), "--torch", options.bad]
    arguments += ["--no-minimize"] if options.channel == "nightly" else []
    interpreter = Interpreter.of(sys.executable)
    forwards = Version(options.good) > Version(options.bad)
    arguments += ["--good", options.good, "--find", "fix" if forwards else "regression", "--channel", options.channel]
    arguments += ["--index-url", url, "--cache-dir", str(cache), "--out", str(out), "--python", str(interpreter.path)]
    subprocess.run([str(COMMAND), *arguments, "-q"], check=True, stdout=subprocess.DEVNULL, env=_plain_environment())
    found = json.loads((out / "report.json").read_text())["bisect"]["fix" if forwards else "regression"]
    ends = (found["last_bad"], found["first_fixed"]) if forwards else (found["last_good"], found["first_bad"])
    return len(set(cache.glob("venvs/*")) - there), ends


def _plain_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("TORCHBISECT_")}


def _print_cost(name: str, cost: Cost, loop: Cost) -> None:
    times = f"{cost.seconds:7.0f} s ({cost.seconds / loop.seconds:5.2f})"
    size = f"{cost.downloaded / 1e6:8.0f} MB ({cost.downloaded / max(loop.downloaded, 1):5.2f})"
    print(f"{name:26} {times}  {size}  {cost.installs:3} installs  {' → '.join(cost.answer)}", flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
