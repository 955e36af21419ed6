"""Ask an agent about a script: start it in an environment, send questions, read answers, survive its death."""

from __future__ import annotations

import itertools
import json
import time
from dataclasses import dataclass, replace
from typing import Any

from torchbisect.containers.environment import Environment, Process
from torchbisect.core.errors import TorchbisectError
from torchbisect.core.repro import Repro, Settings
from torchbisect.core.trace import Trace
from torchbisect.probe.agent_bundle import BOOT, payload
from torchbisect.probe.judge.observation import Ending, Observation
from torchbisect.probe.module_sources import siblings

START_SECONDS = 400.0
PREWARM_SECONDS = 120.0
MARGIN_SECONDS = 30.0
# The limits of a run apply to processor time. On a loaded machine the wall time may be this many times as long.
LOAD_FACTOR = 4.0

# Environment variables of the agent's Python:
# - The order of sets depends on the hash seed.
# - The agent must stay single-threaded until it forks.
# - Threads that wait for work must sleep. If they spin, two runs side by side take longer than one after the other.
# - CUDA must not be initialized before a fork, so the check for a device goes through NVML.
_VARIABLES = {
    "PYTHONHASHSEED": "0",
    "PYTHONUNBUFFERED": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_WAIT_POLICY": "passive",
    "TORCHINDUCTOR_COMPILE_THREADS": "1",
    "PYTORCH_NVML_BASED_CUDA_CHECK": "1",
}


class AgentFailed(TorchbisectError):
    """The agent cannot be started in this environment.

    Attributes:
        errors: the last part of the standard error of the agent's Python.
    """

    def __init__(self, message: str, errors: str) -> None:
        super().__init__(message)
        self.errors = errors


@dataclass(frozen=True)
class Limits:
    """The limits of a run.

    Attributes:
        eager: seconds for an eager run.
        compiled_factor: a compiled run may take the seconds of the eager run times this factor.
        compiled_floor: seconds that a compiled run may take in any case. On a loaded machine inductor took 35 seconds
            for its first kernel.
        memory: bytes of private memory beyond what a child inherits; 0 for no limit.
        output: bytes kept of standard output, and as many of standard error.
        processes: the number of processes that a run may have at a time.
        threads: the number of threads of torch's operators.
    """

    eager: float = 60.0
    compiled_factor: float = 20.0
    compiled_floor: float = 90.0
    memory: int = 4 << 30
    output: int = 1 << 20
    processes: int = 128
    threads: int = 2

    def to_json(self) -> dict[str, Any]:
        """Return the limits in the form that the agent reads."""
        return {
            "eager_seconds": self.eager,
            "compiled_factor": self.compiled_factor,
            "compiled_floor": self.compiled_floor,
            "memory": self.memory,
            "output": self.output,
            "processes": self.processes,
            "threads": self.threads,
        }

    @property
    def longest(self) -> float:
        """Seconds after which an agent that has not answered counts as lost."""
        eager = 4 * self.eager + MARGIN_SECONDS
        compiled = max(self.compiled_floor, self.eager * self.compiled_factor)
        return LOAD_FACTOR * (eager + compiled + PREWARM_SECONDS)


class AgentLost(Exception):
    """The agent ended before it answered.

    Attributes:
        during: the role of the run in progress, such as ``eager`` or ``compiled``.
    """

    def __init__(self, during: str) -> None:
        super().__init__(during)
        self.during = during


class AgentRefused(Exception):
    """The agent answered that an error occurred."""


class Agent:
    """A Python process in an environment, which runs scripts and reports what they did. Use it from one thread.

    The first question starts it. If it has ended, the next question starts it again.

    Attributes:
        started: the number of times that the agent was started.
    """

    def __init__(self, environment: Environment, limits: Limits | None = None) -> None:
        self.environment = environment
        self.limits = limits or Limits()
        self.started = 0
        self._process: Process | None = None
        self._facts: dict[str, Any] = {}
        self._numbers = itertools.count(1)

    @property
    def facts(self) -> dict[str, Any]:
        """The agent's description of its environment: torch, git_version, python, platform, cuda."""
        self.start()
        return self._facts

    def start(self) -> None:
        """Start the agent unless it is running. Raises ``AgentFailed`` if the environment's Python cannot run it."""
        if self._process is not None:
            return
        process = self.environment.start(["-c", BOOT], _VARIABLES)
        self._process = process
        try:
            process.send(payload())
            line = process.read_line(START_SECONDS)
        except BrokenPipeError:
            line = b""
        ready = _decoded(line) if line else None
        if not ready or "ready" not in ready:
            errors = process.errors()
            self.close()
            silent = f"it was not ready after {START_SECONDS:.0f} s" if line is None else "it ended without a message"
            last = errors.strip().splitlines()[-1] if errors.strip() else silent
            raise AgentFailed(f"torch {self.environment.build} cannot run in this environment: {last}", errors)
        self._facts = ready["ready"]
        self.started += 1

    def observe(
        self,
        repro: Repro,
        settings: Settings,
        *,
        eager_key: str | None = None,
        prewarm: bool = False,
        eager_must_succeed: bool = False,
        reuse_kernels: bool = False,
    ) -> Observation:
        """Run a script with compile turned off and with compile honored, and compare the runs.

        Args:
            eager_key: names the eager runs of the script, which are then reused for every question with this name. By
                default the name is derived from the repro.
            prewarm: compile a small function first, so that the times do not include the first compile of a process.
            eager_must_succeed: do not run the script compiled if its eager run does not finish.
            reuse_kernels: share the inductor caches with the other runs for which this is set.

        Raises:
            AgentFailed: the agent cannot be started.
        """
        options = {"warm": prewarm, "finishes": eager_must_succeed, "reuse": reuse_kernels}
        return self._observation("observe", repro, settings=settings.to_json(), key=eager_key, **options)

    def repeat(self, repro: Repro, *, eager_key: str | None = None) -> Observation:
        """Run a script twice in eager, with fresh memory, clock and addresses; every difference is noise."""
        return self._observation("repeat", repro, key=eager_key)

    def trace(self, repro: Repro) -> Trace:
        """Return the trace of an eager run of a script; empty if the run did not end."""
        try:
            return Trace.from_json(self._ask("trace", repro=self._repro_json(repro)))
        except (AgentLost, AgentRefused):
            return Trace(frozenset(), (), ())

    def close(self) -> None:
        """End the agent and every process that it started. A later question starts it again."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()

    def __enter__(self) -> Agent:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _repro_json(self, repro: Repro) -> dict[str, Any]:
        """Return a repro as the agent reads it; a container, which lacks the folder, gets the script's modules."""
        data = repro.to_json()
        if not self.environment.local:
            data.update(directory=None, siblings=siblings(repro.source, repro.directory))
        return data

    def _observation(self, ask: str, repro: Repro, **more: Any) -> Observation:
        try:
            return Observation.from_json(self._ask(ask, repro=self._repro_json(repro), **more))
        except AgentRefused as trouble:
            lost = Ending(how="lost")
            return Observation(lost, lost, notes=(f"the agent could not answer because of an error: {trouble}",))
        except AgentLost as trouble:
            lost = Ending(how="lost")
            # The eager run had ended before the agent was lost, so it is no evidence against the script.
            eager = replace(lost, how="finished") if trouble.during == "compiled" else lost
            return Observation(eager, lost, notes=(f"the agent was lost during the {trouble.during} run",))

    def _ask(self, ask: str, **question: Any) -> Any:
        self.start()
        process = self._process
        assert process is not None
        number = next(self._numbers)
        message = {"id": number, "ask": ask, "limits": self.limits.to_json(), **question}
        during = "eager"
        try:
            process.send(json.dumps(message).encode("ascii") + b"\n")
            deadline = time.monotonic() + self.limits.longest
            while True:
                line = process.read_line(max(0.1, deadline - time.monotonic()))
                if not line:
                    raise AgentLost(during)
                reply = _decoded(line)
                if reply is None or reply.get("id") != number:
                    raise AgentLost(during)
                if "begun" in reply:
                    during = str(reply["begun"])
                elif "trouble" in reply:
                    raise AgentRefused(str(reply["trouble"]))
                elif "answer" in reply:
                    return reply["answer"]
        except (BrokenPipeError, AgentLost) as error:
            self.close()
            raise error if isinstance(error, AgentLost) else AgentLost(during) from None
        except AgentRefused:
            raise
        except BaseException:
            # Interrupted before the answer. The next question would read that answer as its own.
            self.close()
            raise


def _decoded(line: bytes) -> dict[str, Any] | None:
    """Return a line as a JSON object; ``None`` if it is not one."""
    try:
        reply = json.loads(line)
    except ValueError:
        return None
    return reply if isinstance(reply, dict) else None
