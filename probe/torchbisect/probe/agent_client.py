"""The host's side of the conversation with an agent: one question at a time, whatever becomes of the agent."""

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
from torchbisect.probe.local_modules import siblings

START_SECONDS = 400.0
WARMING_SECONDS = 120.0
SLACK_SECONDS = 30.0
# A run's limits count processor time; on a loaded machine it may have this many times as much wall time.
LOADED = 4.0

# Told to the agent's Python at its start. Set order follows the hash seed; the thread counts keep the agent
# single-threaded until it has forked; threads that wait for work sleep, since spinning ones make two runs side by side
# take twice as long as one after the other; the CUDA check goes through NVML because CUDA must not be initialised
# before a fork.
_VARIABLES = {
    "PYTHONHASHSEED": "0",
    "PYTHONUNBUFFERED": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_WAIT_POLICY": "passive",
    "TORCHINDUCTOR_COMPILE_THREADS": "1",
    "PYTORCH_NVML_BASED_CUDA_CHECK": "1",
}


class AgentFailed(TorchbisectError):
    """The agent can't be started in this environment.

    Attributes:
        errors: the last part of what its Python wrote to standard error.
    """

    def __init__(self, message: str, errors: str) -> None:
        super().__init__(message)
        self.errors = errors


@dataclass(frozen=True)
class Limits:
    """What a run may use.

    Attributes:
        eager: seconds for the run without compiling.
        compiled_factor: the compiled run may take the eager run's seconds times this ...
        compiled_floor: ... and never less than this: inductor, cold, on a loaded machine, took 35 seconds for one
        kernel. memory: bytes of anonymous memory on top of what a child inherits; 0 for no limit.
        output: bytes kept of standard output, and of standard error.
        processes: how many processes a run may have at a time.
        threads: for torch's operators in a run.
    """

    eager: float = 60.0
    compiled_factor: float = 20.0
    compiled_floor: float = 90.0
    memory: int = 4 << 30
    output: int = 1 << 20
    processes: int = 128
    threads: int = 2

    def to_json(self) -> dict[str, Any]:
        """As the agent reads it."""
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
        """Seconds after which an agent that has not answered can't be working any more."""
        eager = 4 * self.eager + SLACK_SECONDS
        compiled = max(self.compiled_floor, self.eager * self.compiled_factor)
        return LOADED * (eager + compiled + WARMING_SECONDS)


class Lost(Exception):
    """The agent went away in the middle of a question."""

    def __init__(self, during: str) -> None:
        super().__init__(during)
        self.during = during


class Refused(Exception):
    """The agent answered that it could not."""


class Agent:
    """A Python of an environment that runs scripts and says what they did. Used from one thread.

    It is started by the first question, and again by the next one after it died.
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
        """What the agent said of its environment when it started: torch, git_version, python, platform, cuda."""
        self.start()
        return self._facts

    def start(self) -> None:
        """Start the agent unless it runs already. Raises ``AgentFailed`` if the environment's Python can't run it."""
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
            silent = f"not ready after {START_SECONDS:.0f} s" if line is None else "it said nothing"
            last = errors.strip().splitlines()[-1] if errors.strip() else silent
            raise AgentFailed(f"torch {self.environment.build} can't run here: {last}", errors)
        self._facts = ready["ready"]
        self.started += 1

    def observe(
        self,
        repro: Repro,
        settings: Settings,
        *,
        eager_key: str | None = None,
        warm: bool = False,
        finishes: bool = False,
        reuse: bool = False,
    ) -> Observation:
        """Run a script with compile a no-op and with compile honoured, and compare.

        Args:
            repro: the script.
            settings: what to compile with.
            eager_key: names the eager half; one that was made under this name is used again. Left out, the name follows
                from the repro.
            warm: whether the run is timed, so that it must not pay for what a process does but once.
            finishes: whether a script whose eager run does not come to its end is not run compiled.
            reuse: whether the compiled run finds what inductor made for those before it that were run so.

        Raises:
            AgentFailed: the agent can't be started.
        """
        how = {"settings": settings.to_json(), "key": eager_key, "warm": warm, "finishes": finishes, "reuse": reuse}
        return self._observation("observe", repro, **how)

    def repeat(self, repro: Repro, *, eager_key: str | None = None) -> Observation:
        """Run a script twice with compile a no-op, the second time with fresh memory, clock and addresses varied.

        Every difference is noise: it tells nothing about the compiler. ``observe`` leaves such places out by itself.
        """
        return self._observation("repeat", repro, key=eager_key)

    def trace(self, repro: Repro) -> Trace:
        """What an eager run of a script does. An empty trace if it did not come to an end."""
        try:
            return Trace.from_json(self._ask("trace", repro=self._told(repro)))
        except (Lost, Refused):
            return Trace(frozenset(), (), ())

    def close(self) -> None:
        """End the agent and all it started. May be called twice; a later question starts it again."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()

    def __enter__(self) -> Agent:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _told(self, repro: Repro) -> dict[str, Any]:
        """A repro as the agent reads it; with the modules beside the script where their folder can't be seen."""
        words = repro.to_json()
        if not self.environment.local:
            words.update(directory=None, siblings=siblings(repro.source, repro.directory))
        return words

    def _observation(self, ask: str, repro: Repro, **more: Any) -> Observation:
        try:
            return Observation.from_json(self._ask(ask, repro=self._told(repro), **more))
        except Refused as trouble:
            lost = Ending(how="lost")
            return Observation(lost, lost, notes=(f"the agent could not answer: {trouble}",))
        except Lost as trouble:
            lost = Ending(how="lost")
            # An eager run that came to its end before the agent was lost counts as one that says nothing against the
            # script.
            eager = replace(lost, how="finished") if trouble.during == "compiled" else lost
            return Observation(eager, lost, notes=(f"the agent was lost during the {trouble.during} run",))

    def _ask(self, ask: str, **question: Any) -> Any:
        self.start()
        process = self._process
        assert process is not None
        number = next(self._numbers)
        words = {"id": number, "ask": ask, "limits": self.limits.to_json(), **question}
        during = "eager"
        try:
            process.send(json.dumps(words).encode("ascii") + b"\n")
            deadline = time.monotonic() + self.limits.longest
            while True:
                line = process.read_line(max(0.1, deadline - time.monotonic()))
                if not line:
                    raise Lost(during)
                heard = _decoded(line)
                if heard is None or heard.get("id") != number:
                    raise Lost(during)
                if "begun" in heard:
                    during = str(heard["begun"])
                elif "trouble" in heard:
                    raise Refused(str(heard["trouble"]))
                elif "answer" in heard:
                    return heard["answer"]
        except (BrokenPipeError, Lost) as error:
            self.close()
            raise error if isinstance(error, Lost) else Lost(during) from None
        except Refused:
            raise
        except BaseException:
            # Interrupted in mid-question: what comes next on the stream would answer the wrong one.
            self.close()
            raise


def _decoded(line: bytes) -> dict[str, Any] | None:
    try:
        heard = json.loads(line)
    except ValueError:
        return None
    return heard if isinstance(heard, dict) else None
