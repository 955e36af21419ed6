"""Run a script or the user's test once in an environment, and read what it cost."""

from __future__ import annotations

import importlib.resources
import json
import os
import secrets
import tempfile
from pathlib import Path

from torchbisect.containers.environment import Environment
from torchbisect.containers.process.run_command import Completed
from torchbisect.containers.store.removal import remove_tree
from torchbisect.containers.store.run_folder import unique_folder
from torchbisect.core.decode import DecodeError, JsonLimits, decode, read_object
from torchbisect.core.errors import DiskFull
from torchbisect.core.repro import Repro
from torchbisect.probe.journal import Journal
from torchbisect.probe.measure.comparison import Reading
from torchbisect.probe.measure.measure import Measure
from torchbisect.probe.standalone_run import check_disk, compiler_folders, last_words, place_script
from torchbisect.probe.test_command import SKIP, CommandProbe

_LIMITS = JsonLimits(size=1 << 16)
_FILES = ("measured_run.py", "compile_metrics.py")
#: One thread, and no workers of inductor: what a run costs must not depend on what else runs here.
_ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "TORCHINDUCTOR_COMPILE_THREADS": "1",
    "PYTHONHASHSEED": "0",
}


def pinned_core() -> int | None:
    """Return the core that measured processes are pinned to, the last one of this process; ``None`` on macOS."""
    affinity = getattr(os, "sched_getaffinity", None)
    return max(affinity(0)) if affinity else None


class MeasuredRuns:
    """Runs scripts in one environment, each run in a process of its own.

    The compiler's caches are kept from run to run where that leaves the measure as it is.

    Args:
        timeout: seconds that a run may take.
        command: the user's own test, which is run instead of the script.
        directory: the working directory of that test.
    """

    def __init__(
        self,
        environment: Environment,
        measure: Measure,
        *,
        timeout: float,
        command: str | None = None,
        directory: str | None = None,
    ) -> None:
        self.environment = environment
        self._measure, self._timeout = measure, timeout
        self._command, self._directory = command, directory
        self._warm: Path | None = None
        self._variables: dict[str, str] = {}

    def run(self, repro: Repro, *, cold: bool) -> Reading:
        """Run a script, or the test, once. ``cold`` keeps nothing that an earlier run compiled."""
        if self._command is not None:
            return self._run_test(repro, self._command)
        cold = cold or self._measure.needs_cold_compile
        if cold or self._warm is None:
            self.close()
            self._warm = unique_folder("measured")
        return self._run_script(repro, self._warm)

    def close(self) -> None:
        """Remove what the runs compiled."""
        if self._warm is not None:
            remove_tree(self._warm)
            self._warm = None

    def _run_script(self, repro: Repro, folder: Path) -> Reading:
        mark = f"torchbisect-measured-{secrets.token_hex(8)}:"
        try:
            place = Path(tempfile.mkdtemp(prefix="script-", dir=folder))
            words = place_script(place, repro.source, repro.name, repro.files)
            # A container gets what lies in the working directory, and nothing of it comes back.
            extra = {**self._compiler_folders(folder if self.environment.local else place), **_ONE_THREAD}
            tool = _write_tool(place)
        except OSError as error:
            raise DiskFull(f"{folder}: {error.strerror}: the script can't be written there") from error
        plan = json.dumps({"mark": mark, "core": pinned_core(), "seed": repro.seed})
        words[-1:] = [str(tool), plan, words[-1], *repro.arguments]
        try:
            done = self.environment.run(words, timeout=self._timeout, directory=str(place), extra=extra)
        finally:
            remove_tree(place)
        check_disk(done)
        return self._reading(done, mark)

    def _compiler_folders(self, folder: Path) -> dict[str, str]:
        """Return the variables that place the compiler's caches below a folder."""
        kept = folder / "compiler"
        if not kept.exists():
            kept.mkdir()
            self._variables = compiler_folders(self.environment, str(kept))
        return self._variables

    def _reading(self, done: Completed, mark: str) -> Reading:
        failure = _failure(done, self._timeout, "the script")
        if failure is not None:
            return failure
        lines = [line for line in done.errors.splitlines() if line.startswith(mark)]
        try:
            reading = decode(Reading, read_object(lines[-1][len(mark) :], _LIMITS), "figures") if lines else None
        except DecodeError:
            reading = None
        if reading is None:
            return Reading(failure="not-measured", detail="the script ended its process before it could be measured")
        return self._with_printed(reading, done)

    def _with_printed(self, reading: Reading, done: Completed) -> Reading:
        if not self._measure.printed:
            return reading
        value = self._measure.read_printed(done.output)
        values = reading.values if value is None else {**reading.values, self._measure.text: value}
        return Reading(values, reading.timed)

    def _run_test(self, repro: Repro, command: str) -> Reading:
        threads = " ".join(f"{name}={value}" for name, value in _ONE_THREAD.items())
        probe = CommandProbe(
            self.environment,
            Journal(),
            f"export {threads}; {command}",
            directory=self._directory,
            timeout=self._timeout,
        )
        done = probe.execute(repro)
        failure = _failure(done, self._timeout, "the test")
        if failure is not None:
            return failure
        return self._with_printed(Reading({"time": done.seconds}, "the whole test"), done)


def _write_tool(folder: Path) -> Path:
    """Write the files that measure into a folder of their own, and return the one that is started."""
    place = folder / "tool"
    place.mkdir()
    agent = importlib.resources.files("torchbisect.probe.agent.run")
    for name in _FILES:
        (place / name).write_text((agent / name).read_text(encoding="utf-8"), encoding="utf-8")
    return place / _FILES[0]


def _failure(done: Completed, timeout: float, subject: str) -> Reading | None:
    """Return the reason why a run is no evidence: a build that fails is neither slower nor faster."""
    if done.status == 0:
        return None
    if done.status is None:
        return Reading(failure="timed-out", detail=f"{subject} did not end within {timeout:.0f} s")
    words = (last_words(done.errors) or last_words(done.output))[:300]
    said = f": {words}" if words else ""
    if done.status == SKIP and subject == "the test":
        return Reading(failure="skipped", detail=f"the test says that it can't tell (status {SKIP}){said}")
    how = f"ended with status {done.status}" if done.status > 0 else f"was ended by signal {-done.status}"
    return Reading(failure="fails", detail=f"{subject} {how}{said}")
