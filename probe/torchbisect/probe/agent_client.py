"""Ask an agent about a script: start it in an environment, send questions, read answers, survive its death."""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from torchbisect.containers.environment import Environment
from torchbisect.core.decode import DecodeError, decode, read_object
from torchbisect.core.errors import TorchbisectError
from torchbisect.core.repro import Repro, Settings
from torchbisect.core.timing import timed
from torchbisect.core.trace import Trace
from torchbisect.probe.agent_stream import AgentStream
from torchbisect.probe.judge.observation import Ending, Observation
from torchbisect.probe.limits import Limits
from torchbisect.probe.module_sources import siblings
from torchbisect.probe.private_copy import packed
from torchbisect.probe.script_variables import variables_of

Answer = TypeVar("Answer")

START_SECONDS = 400.0
# The agent sends a sign of life every two seconds. After this silence it was stopped, or the machine has failed it;
# on two cores with ten busy processes a living one was silent for 45 seconds.
SILENCE_SECONDS = 120.0
# The agent's own work between two runs: comparing, removing files.
WORK_SECONDS = 300.0
# One question makes seven runs at most, and compiles first.
MOST_RUNS = 12
# A compiled run that takes longer than this is shown to the user.
_LONG_SECONDS = 10.0

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
class _Ready:
    """The first line of an agent: its description of its environment."""

    ready: dict[str, Any]


@dataclass(frozen=True)
class _Reply:
    """A later line of an agent, with the number of the question.

    Beside it are the role of a run with its limit and the time of the eager run, or a sign of life, or an error, or the
    answer.
    """

    id: int
    begun: str | None = None
    seconds: float = 0.0
    eager_seconds: float = 0.0
    alive: bool = False
    trouble: str | None = None
    answer: Any = None


@dataclass(frozen=True)
class ToolAnswer:
    """The answer of one of torch's own tools; empty if it gave none.

    Attributes:
        text: the output of ``collect-env``.
        backend, subsystem, bisect_number, debug_info: the fields of ``CompilerBisector``'s result, of ``find-pass``.
    """

    text: str | None = None
    backend: str | None = None
    subsystem: str | None = None
    bisect_number: int | None = None
    debug_info: str | None = None


class AgentLost(Exception):
    """The agent did not answer; the text says why.

    Attributes:
        during: the role of the run in progress, such as ``eager`` or ``compiled``.
    """

    def __init__(self, reason: str, during: str) -> None:
        super().__init__(reason)
        self.during = during


class AgentForged(Exception):
    """A line came from the agent that is not its answer; the text says what is wrong with it."""


class AgentRefused(Exception):
    """The agent answered that an error occurred."""


class Agent:
    """A Python process in an environment, which runs scripts and reports what they did. Use it from one thread.

    The first question starts it. If it has ended, the next question starts it again.

    Attributes:
        started: the number of times that the agent was started.
        activity: a phrase about a compiled run in progress that takes long; else empty. Any thread may read it.
    """

    def __init__(self, environment: Environment, limits: Limits | None = None) -> None:
        self.environment = environment
        self.limits = limits or Limits()
        self.started = 0
        self._stream: AgentStream | None = None
        self._facts: dict[str, Any] = {}
        self._variables: Mapping[str, str] = {}
        self._numbers = itertools.count(1)
        self._sent: set[str] = set()
        self._compiling: tuple[float, float] | None = None
        self._is_warm = False

    @property
    def is_cold(self) -> bool:
        """True if it runs, without variables of a script, and has not compiled anything itself."""
        return self._stream is not None and not self._variables and not self._is_warm

    @property
    def activity(self) -> str:
        compiling = self._compiling
        if compiling is None or time.monotonic() - compiling[0] < _LONG_SECONDS:
            return ""
        return f"compiling for {time.monotonic() - compiling[0]:.0f} s; eager took {compiling[1]:.1f} s"

    @property
    def facts(self) -> dict[str, Any]:
        """The agent's description of its environment: torch, git_version, python, platform, cuda."""
        self.start()
        return self._facts

    def start(self) -> None:
        """Start the agent unless it is running. Raises ``AgentFailed`` if the environment's Python cannot run it."""
        if self._stream is not None:
            return
        kept = self.environment.compiler_cache
        variables = {**self._variables, **_VARIABLES, **({"TORCHBISECT_COMPILER_CACHE": kept} if kept else {})}
        if not self.environment.local:
            variables["TORCHBISECT_OWN_MACHINE"] = "1"
        stream = self._stream = AgentStream(self.environment, variables)
        line: bytes | None = b""
        ready: dict[str, Any] | None = None
        with timed("start", "agent"), contextlib.suppress(BrokenPipeError, DecodeError):
            stream.send_modules()
            line = stream.read(START_SECONDS)
            ready = decode(_Ready, read_object(line)).ready if line else None
        if ready is None:
            errors = stream.errors()
            self.close()
            silent = f"it was not ready after {START_SECONDS:.0f} s" if line is None else "it ended without a message"
            last = errors.strip().splitlines()[-1] if errors.strip() else silent
            raise AgentFailed(f"torch {self.environment.build} cannot run in this environment: {last}", errors)
        self._facts = ready
        self._sent.clear()
        self.started += 1

    def observe(
        self,
        repro: Repro,
        settings: Settings,
        *,
        eager_key: str | None = None,
        prewarm: bool = False,
        eager_must_succeed: bool = False,
        kernels: str = "",
        limits: Limits | None = None,
    ) -> Observation:
        """Run a script with compile turned off and with compile honored, and compare the runs.

        Args:
            eager_key: names the eager runs of the script, which are then reused for every question with this name. By
                default the name is derived from the repro.
            prewarm: compile a small function first, so that the times do not include the first compile of a process.
            eager_must_succeed: do not run the script compiled if its eager run does not finish.
            kernels: a name for the runs that share inductor's caches. The agent has room for those of one name. By
                default the run has caches of its own.
            limits: the limits of these runs; by default those of the agent.

        Raises:
            AgentFailed: the agent cannot be started.
        """
        options: dict[str, Any] = {"warm": prewarm, "finishes": eager_must_succeed, "kernels": kernels}
        if limits is not None:
            options["limits"] = limits.to_json()
        return self._observation("observe", repro, settings=settings.to_json(), key=eager_key, **options)

    def repeat(self, repro: Repro, *, eager_key: str | None = None) -> Observation:
        """Run a script twice in eager, with fresh memory, clock and addresses; every difference is noise."""
        return self._observation("repeat", repro, key=eager_key)

    def trace(self, repro: Repro) -> Trace:
        """Return the trace of an eager run of a script; empty if the run did not end."""
        try:
            return self._ask("trace", Trace.from_json, repro)
        except (AgentLost, AgentForged, AgentRefused):
            return Trace((), ())

    def run_tool(self, name: str, repro: Repro) -> ToolAnswer:
        """Return the answer of one of torch's own tools (``agent/run/tools.py``); empty if there is none."""
        try:
            return self._ask(name, partial(decode, ToolAnswer), repro)
        except (AgentLost, AgentForged, AgentRefused):
            return ToolAnswer()

    def prewarm(self, backends: Sequence[str]) -> None:
        """Start the agent, and compile a small function with these backends."""
        with contextlib.suppress(AgentLost, AgentForged, AgentRefused):
            self._ask("prewarm", lambda _: None, Repro(""), backends=list(backends))

    def close(self) -> None:
        """End the agent and every process that it started. A later question starts it again."""
        stream, self._stream = self._stream, None
        self._is_warm = False
        self._sent.clear()
        if stream is not None:
            stream.kill()

    def __enter__(self) -> Agent:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _repro_json(self, repro: Repro) -> dict[str, Any]:
        """Return a repro as the agent reads it: with the key of its files, or with the modules that it imports."""
        data: dict[str, Any] = {**repro.to_json(), "directory": None}
        if repro.files is None:
            return {**data, "siblings": siblings(repro.source, repro.directory)}
        key, folder = repro.files.digest, repro.files.folder if self.environment.local else ""
        if key and not self.environment.local and key not in self._sent:
            for items in packed(Path(repro.files.folder)):
                self._exchange({"ask": "files", "key": key, "items": items}, lambda answer: answer)
            self._sent.add(key)
        return {**data, "files": {**data["files"], "key": key, "folder": folder}}

    def _observation(self, ask: str, repro: Repro, **more: Any) -> Observation:
        try:
            return self._ask(ask, Observation.from_json, repro, **more)
        except AgentForged as trouble:
            forged = Ending(how="forged")
            return Observation(forged, forged, notes=(f"a line that is no answer came from the agent: {trouble}",))
        except AgentRefused as trouble:
            lost = Ending(how="lost")
            return Observation(lost, lost, notes=(f"the agent could not answer because of an error: {trouble}",))
        except AgentLost as trouble:
            lost = Ending(how="lost")
            # The eager run had ended before the agent was lost, so it is no evidence against the script.
            eager = replace(lost, how="finished") if trouble.during in ("prewarm", "compiled") else lost
            return Observation(eager, lost, notes=(f"the agent was lost during the {trouble.during} run: {trouble}",))

    def _ask(self, ask: str, read: Callable[[Any], Answer], repro: Repro, **question: Any) -> Answer:
        """Ask about a script, by an agent that has the variables and the files of this script."""
        variables = variables_of(repro.source)
        if variables != self._variables:
            # Torch reads its variables when it is imported, so a running agent cannot take them over.
            self.close()
            self._variables = variables
        self.start()
        question = {"limits": self.limits.to_json(), **question, "ask": ask, "repro": self._repro_json(repro)}
        with timed("question", ask):
            return self._exchange(question, read)

    def _exchange(self, question: Mapping[str, Any], read: Callable[[Any], Answer]) -> Answer:
        """Send, and ``read`` the answer. An agent that sends anything else is ended: it can't be trusted any more."""
        stream = self._stream
        assert stream is not None
        number = next(self._numbers)
        during, begun = "eager", 0
        try:
            stream.send({"id": number, **question})
            deadline = time.monotonic() + WORK_SECONDS
            while True:
                patience = min(deadline - time.monotonic(), SILENCE_SECONDS)
                line = stream.read(patience) if patience > 0 else None
                if not line:
                    raise AgentLost(_reason_for_loss(line, patience), during)
                reply = decode(_Reply, read_object(line), "line")
                if reply.id != number:
                    raise DecodeError(f"its number is {reply.id}, and {number} was asked")
                if reply.alive:
                    continue
                if reply.begun is not None and begun < MOST_RUNS:
                    during, begun = reply.begun, begun + 1
                    self._is_warm |= during == "prewarm"
                    self._compiling = (time.monotonic(), reply.eager_seconds) if during == "compiled" else None
                    deadline = time.monotonic() + self.limits.wall_seconds(reply.seconds) + WORK_SECONDS
                elif reply.trouble is not None:
                    raise AgentRefused(reply.trouble)
                else:
                    return read(reply.answer)
        except DecodeError as error:
            self.close()
            raise AgentForged(str(error)) from None
        except (BrokenPipeError, AgentLost) as error:
            self.close()
            raise error if isinstance(error, AgentLost) else AgentLost("it ended", during) from None
        except AgentRefused:
            raise
        except BaseException:
            # Interrupted before the answer. The next question would read that answer as its own.
            self.close()
            raise
        finally:
            self._compiling = None


def _reason_for_loss(line: bytes | None, patience: float) -> str:
    if line is not None:
        return "it ended"
    return "it did not come to an end" if patience < SILENCE_SECONDS else f"it was silent for {patience:.0f} s"
