"""The agent's end of the protocol: read questions, have children run scripts, and write the answers.

Each question is one line of JSON. Each answer is one line as well: ``{"id": 7, "answer": {...}}``, or
``{"id": 7, "trouble": "..."}`` if an error occurred. Lines such as ``{"id": 7, "begun": "compiled", "seconds": 90.0}``
may precede an answer. They name the run in progress and its limit, in case the agent itself is stopped or killed.
``channel`` says how a line is told from one that a script has written.
"""

from __future__ import annotations

import collections
import contextlib
import gc
import hashlib
import json
import os
import platform
import signal
import sys
from typing import Any, Dict, NamedTuple, Optional, Sequence

import torch

from .compare.comparison import compare
from .compare.evidence import Evidence, observation
from .message_stream import MessageStream
from .run import imported_modules, protection, script_processes
from .run.cleaning import PrivateFolders, remove
from .run.fork import Run, RunLimits, run_in_child
from .run.prewarm import PREWARM_SECONDS, Prewarmer, first_compile_is_slow, remember_files_of_modules
from .run.tools import TOOLS
from .run.workplace import Workplaces
from .run.written_files import Watched

MAX_KEPT_BYTES = 512 << 20
MAX_KEPT_SCRIPTS = 64
TOOL_SECONDS = 120.0
# Scripts that are compiled before the agent itself compiles with a backend that is quick the first time. That takes as
# long as it saves three children, and of most builds of a search only two questions are asked.
COLD_RUNS = 2
_CUT_SHORT = ("timed-out", "out-of-memory", "over-limit", "lost")


class ScriptToRun(NamedTuple):
    """A script (``repro.Repro`` as JSON) and its limits (``agent_client.Limits``).

    ``key`` names its kept runs. ``timed`` is true if the times of its calls count.
    """

    repro: Dict[str, Any]
    limits: Dict[str, Any]
    key: Optional[str]
    timed: bool


class EagerRuns:
    """The eager runs of one script, each made when it is first needed and kept. ``child.Job`` explains the roles."""

    def __init__(self) -> None:
        self.by_role: Dict[str, Run] = {}

    @property
    def plain(self) -> Run:
        """The run in which nothing is changed."""
        return self.by_role["eager"]

    @property
    def size(self) -> int:
        """Approximate size in bytes."""
        return sum(run.size for run in self.by_role.values())


class Server:
    """The protocol loop.

    ``folder`` holds the inductor caches that runs share; ``kept`` is the folder that ``compiler_cache`` keeps;
    ``watched`` are the folders that runs write to, which are emptied after each run.
    """

    def __init__(self, channel: MessageStream, folder: str, kept: str, watched: Watched) -> None:
        self._channel = channel
        self._write = channel.send
        self._prewarmer = Prewarmer(folder, kept)
        self._known_of_build = kept
        self._watched = watched
        self._private = PrivateFolders(watched.folders, folder, ["shared"], watched.are_private)
        self._compiled_runs = 0
        self._must_end = False
        self._is_compact = False
        self._kept: "collections.OrderedDict[str, EagerRuns]" = collections.OrderedDict()
        self._question_id: Any = None
        self._shared_caches = os.path.join(folder, "shared")
        self._sharing = ""
        self._workplaces = Workplaces(folder)

    def serve(self) -> None:
        """Describe the environment, then answer questions until the other side closes the stream."""
        remember_files_of_modules()
        gc.freeze()
        gc.enable()
        self._keep_imported_modules()
        self._write({"ready": environment_facts()})
        for question in self._channel.questions():
            self._question_id = question.get("id")
            with self._channel.beating(self._question_id):
                try:
                    message = {"answer": self._answer(question)}
                except Exception as error:
                    message = {"trouble": "{}: {}".format(type(error).__name__, error)}
            self._write({"id": self._question_id, **message})
            if self._must_end:
                sys.exit("processes of a run can't be ended")

    def _answer(self, question: Dict[str, Any]) -> Any:
        if question["ask"] == "files":
            return self._workplaces.receive(question["key"], question["items"])
        script = ScriptToRun(question["repro"], question["limits"], question.get("key"), bool(question.get("warm")))
        if question["ask"] == "observe":
            return self._observe(script, question)
        if question["ask"] == "repeat":
            return self._repeat(script)
        if question["ask"] == "trace":
            return self._trace(script)
        if question["ask"] == "prewarm":
            return self._prewarm(question["backends"], include_cheap=True)
        if question["ask"] in TOOLS:
            return self._run_tool(question["ask"], script)
        raise ValueError("the agent does not know the question {!r}".format(question["ask"]))

    def _run(
        self,
        role: str,
        script: ScriptToRun,
        settings: Dict[str, Any],
        seconds: float,
        shared_caches: str = "",
        eager_seconds: float = 0.0,
    ) -> Run:
        begun = {"begun": role, "seconds": seconds, "eager_seconds": eager_seconds}
        self._write({"id": self._question_id, **begun})
        limits = RunLimits(seconds, **{name: script.limits[name] for name in RunLimits._fields[1:]})
        place = self._workplaces.prepare(script.repro)
        files, size = self._workplaces.size()
        limits = limits._replace(files=limits.files + files, bytes=limits.bytes + size)
        self._private.note()
        own = protection.kernel_state()
        if self._must_end:
            sys.exit("processes of an earlier run can't be ended")
        try:
            run = run_in_child(
                role, script.repro, place, settings, limits, self._watched, shared_caches, timed=script.timed
            )
            self._must_end = not run.is_ended
            return run
        finally:
            self._private.sweep()
            if protection.kernel_state() != own:
                sys.exit("a run has changed the limits of the agent")

    def _eager_run(self, runs: EagerRuns, role: str, script: ScriptToRun) -> Run:
        """Return the kept run of a role, or make it."""
        if role not in runs.by_role:
            runs.by_role[role] = self._run(role, script, {}, script.limits["eager_seconds"])
        return runs.by_role[role]

    def _eager_runs(self, script: ScriptToRun) -> EagerRuns:
        """Return the kept eager runs of a script, or make the first one; drop the least recently used scripts."""
        content = json.dumps([script.repro, script.limits], sort_keys=True).encode("utf-8")
        key = script.key or hashlib.sha256(content).hexdigest()
        runs = self._kept.pop(key, None) or EagerRuns()
        self._kept[key] = runs
        while len(self._kept) > MAX_KEPT_SCRIPTS or (
            len(self._kept) > 1 and sum(item.size for item in self._kept.values()) > MAX_KEPT_BYTES
        ):
            self._kept.popitem(last=False)
        self._eager_run(runs, "eager", script)
        return runs

    def _observe(self, script: ScriptToRun, question: Dict[str, Any]) -> Any:
        """Run a script eagerly and compiled, and compare the runs.

        These keys of the question change how it is run:
            settings: ``repro.Settings`` as JSON.
            warm: compile a small function first, so that no run pays for the first compile of a process.
            finishes: do not run the script compiled if its eager run does not finish.
            kernels: share inductor's caches with the runs of this name; those of another name are removed.
        """
        settings = question["settings"]
        runs = self._eager_runs(script)
        eager = runs.plain
        if eager.ending["how"] in _CUT_SHORT:
            note = "the script was not run compiled, because its eager run did not end"
            return observation(eager.ending, {"how": "lost"}, [], [*eager.notes, note])
        if question.get("finishes") and (eager.ending["how"] != "finished" and eager.ending.get("status") != 0):
            return observation(eager.ending, {"how": "not-run"}, [], eager.notes)
        if not eager.ending.get("compiled"):
            # A run that failed did not get that far.
            ended_well = eager.ending["how"] == "finished" or eager.ending.get("status") == 0
            further = ["the script never calls what it compiles"] if ended_well else []
            return observation(eager.ending, eager.ending, [], [*eager.notes, *further])
        backends = [settings["backend"]] if settings.get("backend") else eager.backends
        many = self._compiled_runs >= COLD_RUNS
        self._prewarm(backends, include_cheap=script.timed or many)
        self._compiled_runs += 1
        allowed = max(script.limits["compiled_floor"], eager.ending["seconds"] * script.limits["compiled_factor"])
        seconds = min(allowed, script.limits["compiled_cap"])
        shared_caches = self._caches_of(question.get("kernels", ""))

        changed = {**settings, "draws": eager.may_have_drawn}

        def run_compiled(role: str) -> Run:
            return self._run(role, script, changed, seconds, shared_caches, eager.ending["seconds"])

        def run_eager(role: str) -> Run:
            return self._eager_run(runs, role, script)

        return Evidence(run_eager, run_compiled, script.repro["source"]).observation()

    def _caches_of(self, name: str) -> str:
        """Return the folder of the inductor caches that the runs of a name share; empty for a run without a name."""
        if name and name != self._sharing:
            remove(self._shared_caches)
            self._sharing = name
        return self._shared_caches if name else ""

    def _prewarm(self, backends: Sequence[str], include_cheap: bool) -> None:
        """Compile in the agent with those backends whose first compile is slow, or with all of them."""
        chosen = [name for name in backends if include_cheap or first_compile_is_slow(name)]
        if not chosen:
            return
        self._write({"id": self._question_id, "begun": "prewarm", "seconds": PREWARM_SECONDS})
        gc.disable()
        if not self._is_compact:
            # Not at the start, of which it takes a tenth: most agents are asked two questions. What compiling leaves
            # behind fills the holes, which else every child would fill and so copy.
            gc.unfreeze()
            gc.collect()
            gc.freeze()
            self._is_compact = True
        compiled = [self._prewarmer.prewarm(name) for name in chosen]
        gc.enable()
        if any(compiled):
            gc.collect()
            gc.freeze()
            self._keep_imported_modules()

    def _keep_imported_modules(self) -> None:
        if self._known_of_build:
            imported_modules.keep(self._known_of_build)

    def _repeat(self, script: ScriptToRun) -> Any:
        """Compare the eager run with a second one, in which everything is changed that may differ between runs."""
        runs = self._eager_runs(script)
        eager = runs.plain
        if eager.ending["how"] in _CUT_SHORT:
            return observation(eager.ending, eager.ending, [], eager.notes)
        again = self._eager_run(runs, "perturbed", script)
        return observation(eager.ending, again.ending, compare(eager, again).differences, eager.notes)

    def _trace(self, script: ScriptToRun) -> Any:
        """Return the trace of an eager run: its lines, calls and values."""
        traced = self._run("trace", script, {}, script.limits["eager_seconds"] * 2)
        for entry in traced.entries:
            if entry.facts.get("e") == "trace":
                return entry.facts["trace"]
        raise ValueError("the traced run recorded no trace: it {}".format(traced.ending["how"]))

    def _run_tool(self, name: str, script: ScriptToRun) -> Any:
        """Return the answer of one of torch's own tools; ``{}`` if it came to no end."""
        if name == "find-pass":
            self._prewarm(["inductor"], include_cheap=False)
        ran = self._run(name, script, {}, TOOL_SECONDS)
        return next((entry.facts["answer"] for entry in ran.entries if entry.facts.get("e") == "tool"), {})


def environment_facts() -> Dict[str, Any]:
    """Return the versions of torch, Python and the platform in this environment."""
    return {
        "torch": str(torch.__version__),
        "git_version": getattr(torch.version, "git_version", None),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cuda": torch.version.cuda,
    }


def main(key: bytearray, folder: str) -> None:
    """Move the protocol to private descriptors, so that no other output reaches it, and serve.

    ``key`` is that of the digests; see ``channel``. ``folder`` is the agent's own, for temporary files.
    """
    protection.close_memory()
    reader, writer = os.dup(0), os.dup(1)
    for number in (reader, writer):
        os.set_inheritable(number, False)
    empty = os.open(os.devnull, os.O_RDWR)
    os.dup2(empty, 0)
    os.dup2(2, 1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
    os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")
    script_processes.adopt_orphans()
    torch.set_num_threads(1)
    kept = os.environ.pop("TORCHBISECT_COMPILER_CACHE", "")
    is_alone = bool(os.environ.pop("TORCHBISECT_OWN_MACHINE", ""))
    # The home of this process, which also has its temporary files, was made for it.
    home = os.environ.get("HOME")
    own = home if home == os.path.dirname(folder) else folder
    watched = Watched([own, *(["/dev/shm"] if is_alone else [])], is_alone)
    os.chdir("/")
    with contextlib.suppress(BrokenPipeError):
        Server(MessageStream(reader, writer, key), folder, kept, watched).serve()
    sys.exit(0)
