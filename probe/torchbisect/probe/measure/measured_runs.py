"""Run a script or the user's test once in an environment, and read what it cost."""

from __future__ import annotations

import importlib.resources
import json
import os
import secrets
import tempfile
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from torchbisect.containers.environment import Environment
from torchbisect.containers.process.run_command import Completed
from torchbisect.containers.store.removal import remove_tree
from torchbisect.containers.store.run_folder import unique_folder
from torchbisect.core.decode import DecodeError, JsonLimits, decode, read_object
from torchbisect.core.errors import DiskFull
from torchbisect.core.repro import Repro, Settings
from torchbisect.probe.agent.run.compiler_cache import is_known
from torchbisect.probe.agent_client import Agent, AgentFailed, AgentForged, AgentLost, AgentRefused
from torchbisect.probe.journal import Journal
from torchbisect.probe.localize.compiler_flags import Flag
from torchbisect.probe.measure.comparison import Reading
from torchbisect.probe.measure.measure import Measure
from torchbisect.probe.measure.warm_process import WarmProcess
from torchbisect.probe.standalone_run import check_disk, compiler_folders, last_words, place_script
from torchbisect.probe.test_command import SKIP, CommandProbe

_LIMITS = JsonLimits(size=1 << 20)
_TOOL, _SERVER = "measured_run.py", "measured_server.py"
#: Inductor's folders of whole graphs, and of what dynamo learned; from a graph in there a run would compile nothing.
_GRAPH_CACHES = ("fxgraph", "aotautograd", "dynamo", "locks")
_ANY_KERNEL = "import torch\ntorch.compile(lambda x: x + 1)(torch.ones(1))\n"
#: Runs that are forked from one process. How a process lies in memory makes it a little faster or slower.
FORKS = 10
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

    On this machine these are forks of a process that has imported torch, as the import takes longer than most runs.
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
        self._folder: Path | None = None
        self._variables: dict[str, str] = {}
        self._warm: WarmProcess | None = None
        self._asked_agent = False
        # In the order of this build: another one's order may leave a module half imported, or register things twice.
        self._modules: list[str] = []
        self._forks = 0

    def run(
        self,
        repro: Repro,
        cold: bool,
        turns: list[str] | None = None,
        *,
        timeout: float | None = None,
        reuse_kernels: bool = False,
        flags: Sequence[Flag] = (),
    ) -> Reading:
        """Run a script, or the test, once.

        Args:
            cold: keep nothing that an earlier run compiled.
            turns: the pipes by which it takes turns with a run of the other build.
            timeout: the seconds that this run may take, if fewer than others.
            reuse_kernels: a cold run keeps the kernels that another script compiled, and compiles its graphs anew: no
                count and no time changes by that.
            flags: compiler flags that are set before the script; the run fails if this torch lacks one.
        """
        timeout = min(self._timeout, timeout or self._timeout)
        if self._command is not None:
            return self._run_test(repro, self._command, timeout)
        if self._folder is None:
            self._folder = unique_folder("measured")
        kept = self._folder / "compiler"
        if self._measure.needs_cold_compile or (cold and not reuse_kernels):
            remove_tree(kept)
        elif cold:
            for name in _GRAPH_CACHES:
                remove_tree(kept / "inductor" / name)
        reading = self._run_script(repro, self._folder, turns, timeout, flags=flags)
        if turns is None and reading.values.get("kernel-count") and self._learn_compiler():
            remove_tree(kept)
            reading = self._run_script(repro, self._folder, turns, timeout, flags=flags)
        return reading

    def _learn_compiler(self) -> bool:
        """Have an agent find what inductor has to know about this machine; return ``False`` if that was known.

        A process that does not know it tries instruction sets and compiles headers for 5 to 15 seconds. They would be
        in the compile time of a build, but not in that of another one for which some agent has found it.
        """
        cache = self.environment.compiler_cache
        if cache is None or self._measure.counted or self._asked_agent or is_known(cache):
            return False
        self._asked_agent = True
        with closing(Agent(self.environment)) as agent, suppress(AgentFailed, AgentLost, AgentRefused, AgentForged):
            agent.observe(Repro(_ANY_KERNEL), Settings(), prewarm=True)
        return is_known(cache)

    def generated_code(self, repro: Repro, flags: Sequence[Flag] = ()) -> Reading:
        """Run a script once, for the code that inductor generates; this run's folder is named by a dot in it.

        Nothing that an earlier run compiled is kept.
        """
        folder = self._folder = self._folder or unique_folder("measured")
        remove_tree(folder / "compiler")
        reading = self._run_script(repro, folder, None, self._timeout, code=True, flags=flags)
        return replace(reading, code=tuple(text.replace(str(folder), ".") for text in reading.code))

    def close(self) -> None:
        """End the process that runs are forked from, and remove what they compiled."""
        self._end_warm_process()
        if self._folder is not None:
            remove_tree(self._folder)
            self._folder = None

    def _end_warm_process(self) -> None:
        if self._warm is not None:
            self._warm.close()
            self._warm = None

    def _run_script(
        self,
        repro: Repro,
        folder: Path,
        turns: list[str] | None,
        timeout: float,
        *,
        code: bool = False,
        flags: Sequence[Flag] = (),
    ) -> Reading:
        mark = f"torchbisect-measured-{secrets.token_hex(8)}:"
        try:
            place = Path(tempfile.mkdtemp(prefix="script-", dir=folder))
            words = place_script(place, repro.source, repro.name, repro.files)
            # A container gets what lies in the working directory, and nothing of it comes back.
            local = self.environment.local
            extra = {**self._compiler_folders(folder if local else place), **_ONE_THREAD}
            tool = _write_tool(folder if local else place)
        except OSError as error:
            raise DiskFull(f"{folder}: {error.strerror}: the script can't be written there") from error
        plan: dict[str, Any] = {"mark": mark, "turns": turns, "code": code, "flags": flags, "seed": repro.seed}
        plan["core"] = pinned_core() if self._measure.depends_on_core else None
        try:
            if local:
                done = self._fork(repro, tool, extra).run(place, words, plan, repro.arguments, timeout)
            else:
                words[-1:] = [str(tool / _TOOL), json.dumps(plan), words[-1], *repro.arguments]
                done = self.environment.run(words, timeout=timeout, directory=str(place), extra=extra)
        finally:
            remove_tree(place)
        check_disk(done)
        if done.status is None or done.status < 0:
            remove_tree(folder / "compiler")  # it may have ended while a kernel was written
        return replace(self._reading(done, mark, timeout), seconds=done.seconds)

    def _fork(self, repro: Repro, tool: Path, variables: dict[str, str]) -> WarmProcess:
        """Return the process that the next run is forked from, a new one after so many runs; a count needs none."""
        if self._forks % FORKS == 0 and not self._measure.counted:
            self._end_warm_process()
        self._forks += 1
        if self._warm is None:
            named = dict(repro.files.variables) if repro.files is not None and repro.files.folder else {}
            self._warm = WarmProcess(self.environment, tool / _SERVER, {**variables, **named}, self._modules)
        return self._warm

    def _compiler_folders(self, folder: Path) -> dict[str, str]:
        """Return the variables that place the compiler's caches below a folder."""
        kept = folder / "compiler"
        if not kept.exists():
            kept.mkdir()
            self._variables = compiler_folders(self.environment, str(kept))
        return self._variables

    def _reading(self, done: Completed, mark: str, timeout: float) -> Reading:
        failure = _failure(done, timeout, "the script")
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
        return replace(reading, values=values)

    def _run_test(self, repro: Repro, command: str, timeout: float) -> Reading:
        threads = " ".join(f"{name}={value}" for name, value in _ONE_THREAD.items())
        probe = CommandProbe(
            self.environment,
            Journal(),
            f"export {threads}; {command}",
            directory=self._directory,
            timeout=timeout,
        )
        done = probe.execute(repro)
        failure = _failure(done, timeout, "the test")
        if failure is not None:
            return failure
        return self._with_printed(Reading({"time": done.seconds}, "the whole test", seconds=done.seconds), done)


def _write_tool(folder: Path) -> Path:
    """Write the files that measure into a folder of their own, and return it."""
    place = folder / "tool"
    if not place.exists():
        place.mkdir()
        agent = importlib.resources.files("torchbisect.probe.agent.run")
        for name in (_TOOL, _SERVER, "compile_metrics.py", "compiler_cache.py", "steady_memory.py"):
            (place / name).write_text((agent / name).read_text(encoding="utf-8"), encoding="utf-8")
    return place


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
