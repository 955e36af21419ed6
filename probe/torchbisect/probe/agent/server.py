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
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Set, Tuple

import torch

from .compare.comparison import compare
from .compare.snapshot_diff import Difference
from .message_stream import MessageStream
from .run import protection, script_processes
from .run.cleaning import PrivateFolders
from .run.eager_modes import may_have_ties
from .run.fork import Run, RunLimits, run_in_child
from .run.prewarm import PREWARM_SECONDS, Prewarmer
from .run.tools import TOOLS
from .run.workplace import Workplaces

MAX_KEPT_BYTES = 512 << 20
MAX_KEPT_SCRIPTS = 64
MAX_DIFFERENCES = 40
TOOL_SECONDS = 120.0
_CUT_SHORT = ("timed-out", "out-of-memory", "over-limit", "lost")


class ScriptToRun(NamedTuple):
    """A script (``repro.Repro`` as JSON) and its limits (``agent_client.Limits``); ``key`` names its kept runs."""

    repro: Dict[str, Any]
    limits: Dict[str, Any]
    key: Optional[str]


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
    ``private`` are the folders that nothing but the runs of this agent writes to.
    """

    def __init__(self, channel: MessageStream, folder: str, kept: str = "", private: Sequence[str] = ()) -> None:
        self._channel = channel
        self._write = channel.send
        self._prewarmer = Prewarmer(folder, kept)
        self._private = PrivateFolders(private, folder)
        self._has_compiled = False
        self._must_end = False
        self._kept: "collections.OrderedDict[str, EagerRuns]" = collections.OrderedDict()
        self._question_id: Any = None
        self._shared_caches = os.path.join(folder, "shared")
        self._workplaces = Workplaces(folder)

    def serve(self) -> None:
        """Describe the environment, then answer questions until the other side closes the stream."""
        _freeze_heap()
        gc.enable()
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
        script = ScriptToRun(question["repro"], question["limits"], question.get("key"))
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
        own = protection.kernel_state()
        if self._must_end:
            sys.exit("processes of an earlier run can't be ended")
        try:
            run = run_in_child(role, script.repro, place, settings, limits, shared_caches, self._private.paths)
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
            reuse: share the inductor caches with the other runs for which this is set.
        """
        settings = question["settings"]
        runs = self._eager_runs(script)
        eager = runs.plain
        if eager.ending["how"] in _CUT_SHORT:
            note = "the script was not run compiled, because its eager run did not end"
            return _observation(eager.ending, {"how": "lost"}, [], [*eager.notes, note])
        if question.get("finishes") and (eager.ending["how"] != "finished" and eager.ending.get("status") != 0):
            return _observation(eager.ending, {"how": "not-run"}, [], eager.notes)
        if not eager.ending.get("compiled"):
            # A run that failed did not get that far.
            ended_well = eager.ending["how"] == "finished" or eager.ending.get("status") == 0
            further = ["the script never calls what it compiles"] if ended_well else []
            return _observation(eager.ending, eager.ending, [], [*eager.notes, *further])
        backends = [settings["backend"]] if settings.get("backend") else eager.backends
        self._prewarm(backends, include_cheap=bool(question.get("warm")) or self._has_compiled)
        self._has_compiled = True
        allowed = max(script.limits["compiled_floor"], eager.ending["seconds"] * script.limits["compiled_factor"])
        seconds = min(allowed, script.limits["compiled_cap"])
        shared_caches = self._shared_caches if question.get("reuse") else ""

        def run_compiled(role: str) -> Run:
            return self._run(role, script, settings, seconds, shared_caches, eager.ending["seconds"])

        return self._compare(runs, run_compiled, script)

    def _prewarm(self, backends: Sequence[str], include_cheap: bool) -> None:
        """Compile in the agent with those backends whose first compile is slow, or with all of them.

        An agent that is asked about one script only saves time by this only for inductor.
        """
        chosen = [name for name in backends if include_cheap or name == "inductor"]
        self._write({"id": self._question_id, "begun": "prewarm", "seconds": PREWARM_SECONDS})
        gc.disable()
        compiled = [self._prewarmer.prewarm(name) for name in chosen]
        gc.enable()
        if any(compiled):
            _freeze_heap()

    def _compare(self, runs: EagerRuns, run_compiled: Callable[[str], Run], script: ScriptToRun) -> Any:
        """Run a script compiled, compare, and remove the differences that are no evidence against the compiler."""
        eager, compiled = runs.plain, run_compiled("compiled")
        notes = [*eager.notes, *compiled.notes]
        comparison = compare(eager, compiled)
        differences = comparison.differences
        if differences:
            noise = _places(compare(eager, self._eager_run(runs, "perturbed", script)).differences)
            differences = _without(differences, noise)
            # A double-precision run takes time, so it is made only if the first difference depends on it.
            depends = differences and (differences[0].is_float or differences[0].is_secondary)
            if comparison.needs_reference and depends:
                reference = self._eager_run(runs, "float64", script)
                differences = _without(compare(eager, compiled, reference).differences, noise)
                if reference.ending["how"] != eager.ending["how"]:
                    notes.append("there is no double-precision reference: that run {}".format(reference.ending["how"]))
            if noise:
                places = ", ".join(sorted(noise)[:5])
                notes.append("the eager run does not repeat itself: {} differ between two eager runs".format(places))
            differences = self._without_ties(differences, runs, compiled, script)
        differences, depends_on_draws = self._without_draws(differences, runs, compiled, run_compiled, script)
        dropped = eager.dropped_entries + compiled.dropped_entries
        if dropped:
            notes.append("the record of the runs was too large: {} entries were left out".format(dropped))
        return {**_observation(eager.ending, compiled.ending, differences, notes), "drawn": depends_on_draws}

    def _without_ties(
        self, differences: List[Difference], runs: EagerRuns, compiled: Run, script: ScriptToRun
    ) -> List[Difference]:
        """Return the differences that remain if eager makes the other choice among equal elements."""
        if not differences or not may_have_ties(script.repro["source"]):
            return differences
        reversed_ties = self._eager_run(runs, "reversed_ties", script)
        if reversed_ties.ending["how"] != runs.plain.ending["how"]:
            return differences
        remaining = _places(compare(reversed_ties, compiled).differences)
        return [item for item in differences if _place(item) in remaining]

    def _without_draws(
        self,
        differences: List[Difference],
        runs: EagerRuns,
        compiled: Run,
        run: Callable[[str], Run],
        script: ScriptToRun,
    ) -> Tuple[List[Difference], bool]:
        """Return the differences that remain if random numbers do not depend on the order of draws.

        The second result is True if a difference, or the difference between the endings, did depend on the draws.
        """
        eager = runs.plain
        check_failed = compiled.ending["how"] != eager.ending["how"] and _is_failed_check(compiled.ending)
        values = [item for item in differences if item.facts["attribute"] in ("value", "text")]
        draws = any(entry.facts.get("drew") for entry in eager.entries)
        if not draws or not (values or check_failed):
            return differences, False
        left = self._eager_run(runs, "deterministic_rng", script)
        right = run("deterministic_rng-compiled")
        endings_differ = left.ending["how"] != right.ending["how"] or left.ending["how"] != eager.ending["how"]
        remaining = _places(compare(left, right).differences)
        kept = [item for item in differences if item not in values or endings_differ or _place(item) in remaining]
        return kept, len(kept) < len(differences) or (check_failed and not endings_differ)

    def _repeat(self, script: ScriptToRun) -> Any:
        """Compare the eager run with a second one, in which everything is changed that may differ between runs."""
        runs = self._eager_runs(script)
        eager = runs.plain
        if eager.ending["how"] in _CUT_SHORT:
            return _observation(eager.ending, eager.ending, [], eager.notes)
        again = self._eager_run(runs, "perturbed", script)
        return _observation(eager.ending, again.ending, compare(eager, again).differences, eager.notes)

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


def _freeze_heap() -> None:
    """Exclude all objects from garbage collection, so that children keep sharing their memory pages."""
    gc.collect()
    gc.freeze()


def _is_failed_check(ending: Dict[str, Any]) -> bool:
    """Return True if a script ended by a check of its own: an exit or a failed assertion."""
    return ending["how"] == "exited" or (ending.get("raised") or {}).get("name") == "AssertionError"


def _place(difference: Difference) -> str:
    return str(difference.facts["place"])


def _places(differences: List[Difference]) -> Set[str]:
    return {_place(item) for item in differences}


def _without(differences: List[Difference], places: Set[str]) -> List[Difference]:
    return [item for item in differences if _place(item) not in places]


def _observation(
    eager: Dict[str, Any], compiled: Dict[str, Any], differences: List[Difference], notes: List[str]
) -> Dict[str, Any]:
    return {
        "eager": eager,
        "compiled": compiled,
        "differences": [item.facts for item in differences][:MAX_DIFFERENCES],
        "notes": list(dict.fromkeys(notes)),
    }


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
    private = (os.path.dirname(folder), "/dev/shm") if os.environ.pop("TORCHBISECT_OWN_MACHINE", "") else ()
    os.chdir("/")
    with contextlib.suppress(BrokenPipeError):
        Server(MessageStream(reader, writer, key), folder, kept, private).serve()
    sys.exit(0)
