"""Runs are forked from a process that has imported torch, and no run reaches another; torch is a small module."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from small_torch import small_torch
from waiting import eventually

from torchbisect.core.repro import Files, Repro
from torchbisect.probe.measure.measure import Measure
from torchbisect.probe.measure.measured_runs import FORKS, MeasuredRuns

pytestmark = pytest.mark.slow

#: Each import adds a line to a file.
TORCH = """
__version__ = "2.1.0"
with open({file!r}, "a") as file:
    file.write("imported\\n")
"""
NUMBER = "import torch\nprint('n=%d' % 7)\n"


@pytest.fixture
def imports(tmp_path: Path) -> Path:
    return tmp_path / "imports"


@pytest.fixture
def runs(tmp_path: Path, imports: Path) -> Iterator[MeasuredRuns]:
    environment = small_torch(tmp_path, "2.1.0", TORCH.format(file=str(imports)))
    runs = MeasuredRuns(environment, Measure.parsed("metric:n"), timeout=20)
    yield runs
    runs.close()


def number(runs: MeasuredRuns, source: str, **more: object) -> float | str:
    """Run a script, and return its number or the reason why there is none."""
    reading = runs.run(Repro(source, **more), cold=False)  # type: ignore[arg-type]
    return reading.failure or reading.values.get("metric:n", "nothing")


def test_torch_is_imported_once_for_some_runs(runs: MeasuredRuns, imports: Path) -> None:
    assert [number(runs, NUMBER) for _ in range(FORKS + 1)] == [7] * (FORKS + 1)
    assert imports.read_text().count("imported") == 2, "runs over more than one process do not share its place"


def test_a_count_does_not_depend_on_the_place_of_its_process(runs: MeasuredRuns, imports: Path) -> None:
    counted = MeasuredRuns(runs.environment, Measure("kernel-count"), timeout=20)
    try:
        assert not any(counted.run(Repro(NUMBER), cold=True).failure for _ in range(FORKS + 1))
    finally:
        counted.close()
    assert imports.read_text().count("imported") == 1


CONFIGURED = """
import sys, types
_inductor = sys.modules["torch._inductor"] = types.ModuleType("torch._inductor")
_inductor.__path__ = []
_inductor.config = sys.modules["torch._inductor.config"] = types.ModuleType("torch._inductor.config")
_inductor.config.n = 7
"""


def test_the_flags_of_a_run_take_no_process_of_their_own_and_stay_with_it(tmp_path: Path, imports: Path) -> None:
    environment = small_torch(tmp_path, "2.1.0", CONFIGURED + TORCH.format(file=str(imports)))
    runs = MeasuredRuns(environment, Measure.parsed("metric:n"), timeout=20)
    repro = Repro("import torch\nprint('n=%d' % torch._inductor.config.n)\n")
    try:
        found = [
            runs.run(repro, cold=True, flags=[("_inductor.config.n", value)] if value else []).values["metric:n"]
            for value in (1, 2, 0)
        ]
    finally:
        runs.close()
    assert found == [1, 2, 7]
    assert imports.read_text().count("imported") == 1


def test_a_run_leaves_nothing_to_the_next(runs: MeasuredRuns) -> None:
    source = (
        "import os, sys, torch\n"
        "left = hasattr(torch, 'left') + ('LEFT' in os.environ) + os.path.exists('left')\n"
        "torch.left = os.environ['LEFT'] = '1'\n"
        "open('left', 'w').close()\n"
        "sys.stdout.write('n=%d' % left)\n"
    )
    assert [number(runs, source) for _ in range(3)] == [0, 0, 0]


def test_a_process_that_a_run_left_is_ended(runs: MeasuredRuns, tmp_path: Path) -> None:
    place = tmp_path / "pid"
    source = (
        "import os, time, torch\nleft = os.fork()\nif not left:\n    time.sleep(600)\n    os._exit(0)\n"
        f"open({str(place)!r}, 'w').write(str(left))\nprint('n=1')\n"
    )
    assert number(runs, source) == 1
    assert eventually(lambda: not _lives(int(place.read_text())))


def _lives(process: int) -> bool:
    try:
        return psutil.Process(process).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("raise SystemExit(3)\n", "fails"),
        ("raise ValueError('no')\n", "fails"),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n", "fails"),
        ("import os, signal\nos.kill(os.getppid(), signal.SIGKILL)\n", "fails"),
        ("import os\nos._exit(0)\n", "not-measured"),
        ("print('m=1')\n", "nothing"),
        ("import sys\nassert not sys.stdin.read()\nprint('n=2')\nsys.exit(0)\n", 2),
    ],
)
def test_how_a_script_ends(runs: MeasuredRuns, source: str, reason: float | str) -> None:
    assert number(runs, source) == reason
    assert number(runs, NUMBER) == 7, "the next run is not disturbed"


def test_a_run_that_takes_too_long(tmp_path: Path, imports: Path) -> None:
    environment = small_torch(tmp_path, "2.1.0", TORCH.format(file=str(imports)))
    runs = MeasuredRuns(environment, Measure.parsed("metric:n"), timeout=3)
    try:
        assert number(runs, "import time\ntime.sleep(60)\n") == "timed-out"
        assert number(runs, NUMBER) == 7
    finally:
        runs.close()


def test_the_folder_the_arguments_and_the_variables_are_those_of_the_user(runs: MeasuredRuns, tmp_path: Path) -> None:
    folder = tmp_path / "project"
    for place in ("work", "package", "typed"):
        (folder / place).mkdir(parents=True)
    (folder / "work/number.txt").write_text("3")
    (folder / "package/helper.py").write_text("FOUR = 4\n")
    (folder / "typed/lines").write_text("5")
    files = Files(
        folder=str(folder),
        digest="project",
        script=".",
        cwd="work",
        paths=("package",),
        typed_input="typed/lines",
        variables=(("SIX", "6"),),
    )
    source = (
        "import os, sys, torch, helper\n"
        "parts = [open('number.txt').read(), helper.FOUR, sys.stdin.read(), os.environ['SIX'], sys.argv[1]]\n"
        "print('n=' + ''.join(map(str, parts)))\n"
    )
    assert [number(runs, source, files=files, arguments=("8",)) for _ in range(2)] == [34568, 34568]


KEEPS = """\
import os, torch
folder = os.environ["TORCHINDUCTOR_CACHE_DIR"]
left = [name for name in ("kernels", "fxgraph") if os.path.exists(f"{folder}/{name}/x")]
for name in ("kernels", "fxgraph"):
    os.makedirs(f"{folder}/{name}", exist_ok=True)
    open(f"{folder}/{name}/x", "w").close()
assert left == EXPECTED, left
"""


def test_the_kernels_of_another_script_stay_where_they_may_and_its_graphs_do_not(runs: MeasuredRuns) -> None:
    measured = MeasuredRuns(runs.environment, Measure("kernel-count"), timeout=20)

    def run(expected: list[str], *, cold: bool, reuse_kernels: bool = False, more: str = "") -> str:
        source = KEEPS.replace("EXPECTED", repr(expected)) + more
        return measured.run(Repro(source), cold, reuse_kernels=reuse_kernels).failure

    try:
        assert run([], cold=True) == ""
        assert run(["kernels", "fxgraph"], cold=False) == ""
        assert run(["kernels"], cold=True, reuse_kernels=True) == ""
        assert run(["kernels"], cold=True, reuse_kernels=True, more="os.kill(os.getpid(), 9)\n") == "fails"
        assert run([], cold=True, reuse_kernels=True) == "", "a run that was killed may leave half a kernel"
        assert run([], cold=True) == ""
    finally:
        measured.close()
