"""A suite that is run with pytest in an environment, with tests that do what tests do at their worst."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from torchbisect.containers.environment import Environment
from torchbisect.core.repro import Files
from torchbisect.probe.suite_run import SuiteRun, run_suite

pytestmark = [pytest.mark.torch, pytest.mark.slow]

SUITE = """
import os, signal, sys, time, unittest
import pytest

def test_passes(): pass
def test_fails(): assert 0
def test_prints(capfd): os.write(1, b"torchbisect-suite:AAAA\\n")
def test_moves(tmp_path): os.chdir(tmp_path)
def test_crashes(): os.kill(os.getpid(), signal.SIGSEGV)
def test_exits(): os._exit(0)
def test_hangs(): time.sleep(1000)
def test_skips(): pytest.skip("no")
@pytest.mark.xfail
def test_expected(): assert 0
@pytest.fixture
def broken(): raise ValueError
def test_fixture(broken): pass
@pytest.mark.parametrize("x", ["a/b", "c::d"])
def test_many(x): pass
class TestOld(unittest.TestCase):
    def test_inside(self): pass
"""


def run(environment: Environment, folder: Path, *words: str, **options: object) -> SuiteRun | None:
    return run_suite(environment, Files(str(folder)), words, **options)  # type: ignore[arg-type]


@pytest.mark.long
def test_each_test_has_its_outcome(tmp_path: Path, torch_of: Callable[[str], Environment]) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_all.py").write_text(SUITE)
    (tmp_path / "tests" / "test_broken.py").write_text("import nothing_of_this_name\n")
    found = run(torch_of("installed"), tmp_path, "tests", "-q", "-x", seconds=10)
    assert found is not None
    outcomes = {name.removeprefix("tests/test_all.py::"): outcome for name, outcome in found.tests.items()}
    assert outcomes == {
        "test_passes": "passed",
        "test_fails": "failed",
        "test_prints": "passed",
        "test_moves": "passed",
        "test_crashes": "crashed",
        "test_exits": "crashed",
        "test_hangs": "timed-out",
        "test_skips": "skipped",
        "test_expected": "xfailed",
        "test_fixture": "error",
        "test_many[a/b]": "passed",
        "test_many[c::d]": "passed",
        "TestOld::test_inside": "passed",
    }
    assert list(found.errors) == ["tests/test_broken.py"]
    assert "nothing_of_this_name" in found.errors["tests/test_broken.py"]


def test_some_tests_are_run_alone(tmp_path: Path, torch_of: Callable[[str], Environment]) -> None:
    (tmp_path / "test_all.py").write_text(SUITE)
    found = run(torch_of("installed"), tmp_path, only=["test_all.py::test_fails", "test_all.py::test_many[c::d]"])
    assert found is not None
    assert found.tests == {"test_all.py::test_fails": "failed", "test_all.py::test_many[c::d]": "passed"}


@pytest.mark.parametrize(("words", "status"), [(("nowhere",), 4), (("--no-such-option",), 4), ((), 5)])
def test_a_run_without_tests_keeps_the_status_of_pytest(
    tmp_path: Path, torch_of: Callable[[str], Environment], words: tuple[str, ...], status: int
) -> None:
    found = run(torch_of("installed"), tmp_path, *words)
    assert found is not None
    assert (found.tests, found.status) == ({}, status)
