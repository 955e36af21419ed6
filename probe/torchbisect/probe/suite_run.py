"""Run a test suite with pytest in an environment, and return how each test ended.

The suite runs in a process of its own below a driver. A test that ends that process, or hangs, is named, and the tests
after it are run in a new one.
"""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torchbisect.containers.environment import Environment
from torchbisect.core.decode import DecodeError, decode, read_object
from torchbisect.core.repro import Files
from torchbisect.probe.standalone_run import check_disk, placed_script

#: The file name of the driver.
DRIVER_NAME = "torchbisect_suite.py"
#: Outcomes of a test that count as failures.
FAILING = frozenset({"failed", "error", "crashed", "timed-out"})
#: Seconds that one test may take.
TEST_SECONDS = 600.0

_LONGEST = 7 * 86400.0
_MOST_BYTES = 64_000_000
_MARK = "torchbisect-suite:"
_RESULTS = "torchbisect-suite-results"

_DRIVER = r'''
import base64, importlib.util, json, os, subprocess, sys, time, zlib

PLAN = json.loads(sys.argv[1])
for name in ("folder", "results", "log"):  # a test may change the working directory
    PLAN[name] = os.path.abspath(PLAN[name])
RESULTS = PLAN["results"]
COLLECTING = 3600  # seconds that pytest may take before its first test


class Recorder:
    """Write the beginning and the outcome of each test."""

    def __init__(self, done):
        self.done, self.outcome, self.names = done, {}, {}

    def write(self, *entry):
        with open(RESULTS, "a") as file:
            file.write(json.dumps(entry) + "\n")

    def pytest_collection_modifyitems(self, config, items):
        kept, left = [], []
        for item in items:
            path = os.path.relpath(str(item.fspath), PLAN["folder"]).replace(os.sep, "/")
            self.names[item.nodeid] = name = path + "::" + item.nodeid.partition("::")[2]
            wanted = name not in self.done and (PLAN["only"] is None or name in PLAN["only"])
            (kept if wanted else left).append(item)
        if left:
            config.hook.pytest_deselected(items=left)
            items[:] = kept

    def pytest_collectreport(self, report):
        if report.failed:
            said = [line for line in str(report.longrepr).splitlines() if line.strip()]
            self.write("collect", report.nodeid, said[-1][:400] if said else "")

    def pytest_collection_finish(self, session):
        self.write("total", len(session.items) + len(self.done), "")

    def pytest_runtest_logstart(self, nodeid, location):
        self.write("start", self.names.get(nodeid, nodeid), "")

    def pytest_runtest_logreport(self, report):
        found = report.outcome
        if hasattr(report, "wasxfail"):
            found = "xfailed" if report.skipped else "xpassed"
        elif report.failed and report.when != "call":
            found = "error"
        before = self.outcome.get(report.nodeid, "passed")
        self.outcome[report.nodeid] = found if found != "passed" else before

    def pytest_runtest_logfinish(self, nodeid, location):
        self.write("end", self.names.get(nodeid, nodeid), self.outcome.pop(nodeid, "passed"))


def read():
    entries = []
    if os.path.exists(RESULTS):
        with open(RESULTS) as file:
            for line in file:
                try:
                    entries.append(json.loads(line))
                except ValueError:
                    pass
    tests, errors, running = {}, {}, None
    for kind, name, text in entries:
        if kind == "start":
            running = name
        elif kind == "end":
            tests[name], running = text, None
        elif kind == "collect":
            errors[name] = text
    return tests, errors, running


def child():
    import pytest
    options = ["-p", "no:cacheprovider", "--maxfail=0", "--continue-on-collection-errors"]
    options += ["-n0"] if importlib.util.find_spec("xdist") else []
    recorder = Recorder(read()[0])
    status = pytest.main(PLAN["words"] + options, plugins=[recorder])
    if status == pytest.ExitCode.USAGE_ERROR:
        status = pytest.main(["-o", "addopts="] + PLAN["words"] + options, plugins=[recorder])
    return int(status)


def parent():
    tests, errors, status, size, changed = {}, {}, None, 0, time.time()
    for _ in range(1000):
        with open(PLAN["log"], "ab") as log:
            command = [sys.executable, __file__, sys.argv[1], "child"]
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        ended, changed = "crashed", time.time()
        while process.poll() is None:
            time.sleep(0.2)
            now = os.path.getsize(RESULTS) if os.path.exists(RESULTS) else 0
            if now != size:
                size, changed = now, time.time()
            elif time.time() - changed > (PLAN["seconds"] if read()[2] else max(PLAN["seconds"], COLLECTING)):
                ended = "timed-out"
                process.kill()
        status = process.wait()
        tests, errors, running = read()
        if running is None:
            break
        with open(RESULTS, "a") as file:
            file.write(json.dumps(["end", running, ended]) + "\n")
        tests[running] = ended
    with open(PLAN["log"], "rb") as log:
        said = log.read()[-4000:].decode("utf-8", "replace")
    text = json.dumps({"status": status, "tests": tests, "errors": errors, "said": said})
    print("\n@MARK@" + base64.b64encode(zlib.compress(text.encode(), 9)).decode())


if sys.argv[2:] == ["child"]:
    sys.exit(child())
parent()
'''.replace("@MARK@", _MARK)


@dataclass(frozen=True)
class SuiteRun:
    """A run of a test suite on one build.

    Attributes:
        tests: the outcome of each test by its name, ``FILE::TEST`` from the folder of the suite: ``passed``,
            ``failed``, ``error`` (in a fixture), ``crashed``, ``timed-out``, ``skipped``, ``xfailed`` or ``xpassed``.
        errors: the last line of each file that could not be collected, by its name.
        status: the exit status of pytest; ``None`` if it was ended.
        said: the last part of what pytest printed.
    """

    tests: dict[str, str]
    errors: dict[str, str]
    status: int | None
    said: str

    def failing(self, name: str) -> bool:
        """Return True if a test fails in this run."""
        return self.tests.get(name) in FAILING

    @classmethod
    def from_json(cls, value: Any) -> SuiteRun:
        """Read a run back. Raises ``DecodeError`` for a value of another shape."""
        return decode(cls, value, "suite run")


def run_suite(
    environment: Environment,
    files: Files,
    words: Sequence[str],
    *,
    only: Sequence[str] | None = None,
    seconds: float = TEST_SECONDS,
    watch: Callable[[Callable[[], tuple[int, int]]], None] = lambda count: None,
) -> SuiteRun | None:
    """Run a suite in a copy of its files, and return the outcomes; ``None`` if the driver gave no answer.

    Args:
        words: the arguments of pytest.
        only: the tests to run; by default all of them.
        seconds: the most time that one test may take.
        watch: gets a function that returns how many tests have ended, and how many there are.

    Raises ``DiskFull`` if there is no room.
    """
    with placed_script(environment, _DRIVER, DRIVER_NAME, files, what="suite") as (folder, started, extra):
        back = Path(*[".."] * (len(Path(files.cwd).parts) + 1))
        plan = {
            "words": list(words),
            "only": None if only is None else list(only),
            "seconds": seconds,
            "folder": ".",
            "results": str(back / _RESULTS),
            "log": str(back / f"{_RESULTS}.log"),
        }
        watch(lambda: _counted(Path(folder, _RESULTS)))
        done = environment.run([*started, json.dumps(plan)], timeout=_LONGEST, directory=folder, extra=extra)
    check_disk(done)
    try:
        packed = base64.b64decode(done.output.rpartition(_MARK)[2])
        return SuiteRun.from_json(read_object(zlib.decompressobj().decompress(packed, _MOST_BYTES)))
    except (binascii.Error, zlib.error, ValueError, DecodeError):
        return None


def _counted(results: Path) -> tuple[int, int]:
    """Return how many tests have ended and how many there are, from the file of results so far."""
    try:
        entries = [json.loads(line) for line in results.read_text("utf-8").splitlines() if line.endswith("]")]
    except (OSError, ValueError):
        return 0, 0
    totals = [entry[1] for entry in entries if entry[0] == "total"]
    return sum(entry[0] == "end" for entry in entries), totals[-1] if totals else 0
