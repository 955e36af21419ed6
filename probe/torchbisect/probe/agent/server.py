"""The agent's side of the conversation: reads questions, has children run scripts, answers.

One question a line, JSON, in; one line, JSON, out: ``{"id": 7, "answer": {...}}`` or ``{"id": 7, "trouble": "..."}``.
Before an answer there may be ``{"id": 7, "begun": "compiled"}`` lines, which tell what was going on if the agent itself
is killed.
"""

from __future__ import annotations

import collections
import gc
import hashlib
import json
import os
import platform
import signal
import sys
import tempfile
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import torch

from .compare.comparison import compare
from .run import processes
from .run.fork import Bounds, Run, run
from .run.prewarm import Warmth
from .run.tie_breaking import may_choose

KEPT_BYTES = 512 << 20
KEPT_RUNS = 64
DEAD_ENDS = ("timed-out", "out-of-memory", "lost")


class Eager:
    """What is known of one script run without compiling; each run is made when it is first needed, and kept."""

    def __init__(self) -> None:
        self.plain: Optional[Run] = None
        self.perturbed: Optional[Run] = None
        self.reference: Optional[Run] = None
        self.chosen: Optional[Run] = None
        self.settled: Optional[Run] = None

    @property
    def weight(self) -> int:
        """Bytes held."""
        runs = (self.plain, self.perturbed, self.reference, self.chosen, self.settled)
        return sum(item.weight for item in runs if item is not None)


class Server:
    """Answers questions over two file descriptors."""

    def __init__(self, reader: int, writer: int, folder: str) -> None:
        self._in = os.fdopen(reader, "rb")
        self._out = os.fdopen(writer, "wb", buffering=0)
        self._warmth = Warmth()
        self._compiled = False
        self._kept: "collections.OrderedDict[str, Eager]" = collections.OrderedDict()
        self._number: Any = None
        self._made = os.path.join(folder, "made")

    def serve(self) -> None:
        """Say what is here, then answer until the other side goes away."""
        _settle()
        gc.enable()
        self._say({"ready": facts()})
        for line in self._in:
            question = json.loads(line.decode("utf-8"))
            self._number = question.get("id")
            try:
                self._say({"id": self._number, "answer": self._answer(question)})
            except Exception as error:
                self._say({"id": self._number, "trouble": "{}: {}".format(type(error).__name__, error)})

    def _say(self, words: Dict[str, Any]) -> None:
        data = (json.dumps(words) + "\n").encode("ascii")
        while data:
            data = data[os.write(self._out.fileno(), data) :]

    def _answer(self, question: Dict[str, Any]) -> Any:
        if question["ask"] == "observe":
            how = {name: bool(question.get(name)) for name in ("warm", "finishes", "reuse")}
            half = self._half(question["repro"], question["limits"], question.get("key"))
            return self.observe(half, question["repro"], question["settings"], question["limits"], **how)
        if question["ask"] == "repeat":
            return self.repeat(question["repro"], question["limits"], question.get("key"))
        if question["ask"] == "trace":
            return self.trace(question["repro"], question["limits"])
        raise ValueError("no such question: {!r}".format(question["ask"]))

    # Runs -----------------------------------------------------------------------------------------------------------

    def _run(
        self,
        role: str,
        repro: Dict[str, Any],
        settings: Dict[str, Any],
        limits: Dict[str, Any],
        seconds: float,
        made: str = "",
    ) -> Run:
        self._say({"id": self._number, "begun": role})
        bounds = Bounds(seconds, limits["memory"], limits["output"], limits["processes"], limits["threads"])
        return run(role, repro, settings, bounds, made)

    def _half(self, repro: Dict[str, Any], limits: Dict[str, Any], key: Optional[str]) -> Eager:
        name = key or hashlib.sha256(json.dumps([repro, limits], sort_keys=True).encode("utf-8")).hexdigest()
        half = self._kept.pop(name, None) or Eager()
        self._kept[name] = half
        while len(self._kept) > KEPT_RUNS or (
            len(self._kept) > 1 and sum(item.weight for item in self._kept.values()) > KEPT_BYTES
        ):
            self._kept.popitem(last=False)
        if half.plain is None:
            half.plain = self._run("eager", repro, {}, limits, limits["eager_seconds"])
        return half

    def _perturbed(self, half: Eager, repro: Dict[str, Any], limits: Dict[str, Any]) -> Run:
        if half.perturbed is None:
            half.perturbed = self._run("perturbed", repro, {}, limits, limits["eager_seconds"])
        return half.perturbed

    def _reference(self, half: Eager, repro: Dict[str, Any], limits: Dict[str, Any]) -> Run:
        if half.reference is None:
            half.reference = self._run("float64", repro, {}, limits, limits["eager_seconds"])
        return half.reference

    def _without_ties(
        self, left: Any, half: Eager, compiled: Run, repro: Dict[str, Any], limits: Dict[str, Any]
    ) -> Any:
        """The findings that are there too where an eager run chooses otherwise among equal elements."""
        eager = half.plain
        if not left or not may_choose(repro["source"]):
            return left
        if half.chosen is None:
            half.chosen = self._run("chosen", repro, {}, limits, limits["eager_seconds"])
        if eager is None or half.chosen.ending["how"] != eager.ending["how"]:
            return left
        differs = _places(compare(half.chosen, compiled).findings)
        return [item for item in left if _place(item) in differs]

    # Questions ------------------------------------------------------------------------------------------------------

    def observe(
        self,
        half: Eager,
        repro: Dict[str, Any],
        settings: Dict[str, Any],
        limits: Dict[str, Any],
        warm: bool = False,
        finishes: bool = False,
        reuse: bool = False,
    ) -> Any:
        """The eager and the compiled run of a script side by side.

        If ``warm``, no run pays for a process's first; if it ``finishes``, an eager run that doesn't is the only one;
        with ``reuse`` inductor finds what it made for others that were run so.
        """
        eager = half.plain
        assert eager is not None
        if eager.ending["how"] in DEAD_ENDS:
            ending = {"how": "lost"}
            return _observation(eager.ending, ending, [], [*eager.notes, "not run compiled: the eager run didn't end"])
        if finishes and (eager.ending["how"] != "finished" and eager.ending.get("status") != 0):
            return _observation(eager.ending, {"how": "not-run"}, [], eager.notes)
        if not eager.ending.get("compiled"):
            return _observation(
                eager.ending, eager.ending, [], [*eager.notes, "the script never calls what it compiles"]
            )
        self._warm([settings["backend"]] if settings.get("backend") else eager.backends, warm or self._compiled)
        self._compiled = True
        seconds = max(limits["compiled_floor"], eager.ending["seconds"] * limits["compiled_factor"])
        made = self._made if reuse else ""
        compiled = self._run("compiled", repro, settings, limits, seconds, made)

        def settled() -> Tuple[Run, Run]:
            if half.settled is None:
                half.settled = self._run("settled", repro, {}, limits, limits["eager_seconds"])
            return half.settled, self._run("settled-compiled", repro, settings, limits, seconds, made)

        return self._compared(half, compiled, settled, repro, limits)

    def _warm(self, backends: Sequence[str], all_of_it: bool) -> None:
        """Many an agent is asked about one script only: unless that needs inductor it pays for its warmth itself."""
        wanted = [name for name in backends if all_of_it or name == "inductor"]
        gc.disable()
        warmed = [self._warmth.upto(name) for name in wanted]
        gc.enable()
        if any(warmed):
            _settle()

    def _compared(
        self,
        half: Eager,
        compiled: Run,
        settled: Callable[[], Tuple[Run, Run]],
        repro: Dict[str, Any],
        limits: Dict[str, Any],
    ) -> Any:
        eager = half.plain
        assert eager is not None
        notes = [*eager.notes, *compiled.notes]
        found = compare(eager, compiled)
        if found.findings:
            noise = _places(compare(eager, self._perturbed(half, repro, limits)).findings)
            left = [item for item in found.findings if _place(item) not in noise]
            # The double-precision run is only worth its time where the first thing told hangs on it.
            if found.doubtful and left and (left[0].number or left[0].weak):
                reference = self._reference(half, repro, limits)
                found = compare(eager, compiled, reference)
                left = [item for item in found.findings if _place(item) not in noise]
                if reference.ending["how"] != eager.ending["how"]:
                    notes.append("no double-precision reference: that run {}".format(reference.ending["how"]))
            if noise:
                notes.append("the eager run doesn't repeat itself: {}".format(", ".join(sorted(noise)[:5])))
            found = found._replace(findings=self._without_ties(left, half, compiled, repro, limits))
        sure, drawn = self._drawn_alike(found.findings, half, compiled, settled)
        if eager.lost or compiled.lost:
            notes.append("the record was too large: {} entries left out".format(eager.lost + compiled.lost))
        return {**_observation(eager.ending, compiled.ending, sure, notes), "drawn": drawn}

    def _drawn_alike(
        self, findings: List[Any], half: Eager, compiled: Run, settled: Callable[[], Tuple[Run, Run]]
    ) -> Tuple[List[Any], bool]:
        """The findings without values that only other random numbers make differ, and whether something hung on those.

        Args:
            settled: makes both runs again, with numbers that hang neither on the order of draws nor on how many.
        """
        eager = half.plain
        assert eager is not None
        ended = compiled.ending["how"] != eager.ending["how"] and _is_a_check(compiled.ending)
        values = [item for item in findings if item.facts["attribute"] in ("value", "text")]
        drew = any(entry.facts.get("drew") for entry in eager.entries)
        if not drew or not (values or ended):
            return findings, False
        left, right = settled()
        still = left.ending["how"] != right.ending["how"] or left.ending["how"] != eager.ending["how"]
        differs = _places(compare(left, right).findings)
        sure = [item for item in findings if item not in values or still or _place(item) in differs]
        return sure, len(sure) < len(findings) or (ended and not still)

    def repeat(self, repro: Dict[str, Any], limits: Dict[str, Any], key: Optional[str]) -> Any:
        """The eager run beside itself, with what may vary varied."""
        half = self._half(repro, limits, key)
        assert half.plain is not None
        if half.plain.ending["how"] in DEAD_ENDS:
            return _observation(half.plain.ending, half.plain.ending, [], half.plain.notes)
        again = self._perturbed(half, repro, limits)
        return _observation(half.plain.ending, again.ending, compare(half.plain, again).findings, half.plain.notes)

    def trace(self, repro: Dict[str, Any], limits: Dict[str, Any]) -> Any:
        """What an eager run of a script does, line by line and call by call."""
        traced = self._run("trace", repro, {}, limits, limits["eager_seconds"] * 2)
        for entry in traced.entries:
            if entry.facts.get("e") == "trace":
                return entry.facts["trace"]
        raise ValueError("the traced run {}".format(traced.ending["how"]))


def _settle() -> None:
    """What there is now is shared with the children: nothing is to touch it again."""
    gc.collect()
    gc.freeze()


def _is_a_check(ending: Dict[str, Any]) -> bool:
    """Whether a script ended because something that it checks didn't hold."""
    return ending["how"] == "exited" or (ending.get("raised") or {}).get("name") == "AssertionError"


def _place(finding: Any) -> str:
    return str(finding.facts["place"])


def _places(findings: Any) -> "set[str]":
    return {_place(item) for item in findings}


def _observation(eager: Dict[str, Any], compiled: Dict[str, Any], findings: Any, notes: Any) -> Dict[str, Any]:
    return {
        "eager": eager,
        "compiled": compiled,
        "differences": [item.facts for item in findings][:40],
        "notes": list(dict.fromkeys(notes)),
    }


def facts() -> Dict[str, Any]:
    """What this environment is."""
    return {
        "torch": str(torch.__version__),
        "git_version": getattr(torch.version, "git_version", None),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cuda": torch.version.cuda,
    }


def main() -> None:
    """Take the streams away from whoever may print, and serve."""
    reader, writer = os.dup(0), os.dup(1)
    for number in (reader, writer):
        os.set_inheritable(number, False)
    empty = os.open(os.devnull, os.O_RDWR)
    os.dup2(empty, 0)
    os.dup2(2, 1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
    os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")
    processes.adopt_orphans()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory(prefix="torchbisect-agent-") as folder:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = os.path.join(folder, "inductor")
        os.environ["TRITON_CACHE_DIR"] = os.path.join(folder, "triton")
        try:
            Server(reader, writer, folder).serve()
        except BrokenPipeError:
            pass
    sys.exit(0)
