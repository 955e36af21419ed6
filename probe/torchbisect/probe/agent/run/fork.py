"""The agent's side of a run: fork, watch, end, and gather what is left."""

from __future__ import annotations

import gc
import os
import select
import shutil
import signal
import sys
import tempfile
import time
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from ..capture.tape import Entry, Tape
from . import inductor_cache, processes
from .child import Job, work

TAPE_BYTES = 256 << 20
KEPT_TAIL = 64 << 10
FIRST_LOOK = 0.3


class Bounds(NamedTuple):
    """Limits of one run.

    Attributes:
        seconds: processor time, or wall time for a run that does nothing; see ``processes.Clock``.
        memory: bytes of memory of its own, for it and for all that it started.
        output: bytes of standard output that are kept, and as many of standard error.
        processes: how many processes it may have at a time.
        threads: for torch's operators.
    """

    seconds: float
    memory: int
    output: int
    processes: int
    threads: int


class Run(NamedTuple):
    """What is left of a run.

    Attributes:
        ending: ``observation.Ending`` as JSON.
        entries: what it laid down.
        output: all of its standard output that is kept.
        notes: what the run has to say to the reader.
        backends: the backends that the script itself asks for.
        lost: entries that found no room on the tape.
    """

    ending: Dict[str, Any]
    entries: List[Entry]
    output: str
    notes: List[str]
    backends: List[str]
    lost: int

    @property
    def weight(self) -> int:
        """Roughly how many bytes this holds."""
        return sum(len(entry.data) for entry in self.entries) + len(self.output) + 4096


class _Capture:
    """One output stream: its first part and its last, the middle dropped."""

    def __init__(self, reader: int, cap: int) -> None:
        self.reader = reader
        self._cap = cap
        self._head = bytearray()
        self._tail = bytearray()
        self._dropped = 0
        self.open = True

    def drain(self) -> None:
        """Take what is there."""
        try:
            block = os.read(self.reader, 1 << 16)
        except BlockingIOError:
            return
        except OSError:
            block = b""
        if not block:
            self.open = False
            return
        room = self._cap - len(self._head)
        self._head += block[:room]
        self._tail += block[max(room, 0) :]
        if len(self._tail) > 4 * KEPT_TAIL:
            self._dropped += len(self._tail) - KEPT_TAIL
            del self._tail[:-KEPT_TAIL]

    def text(self) -> str:
        """What is kept, which depends on what was written and not on the pieces in which it came."""
        beyond = self._dropped + len(self._tail)
        if beyond <= 4 * KEPT_TAIL:
            return bytes(self._head + self._tail).decode("utf-8", "replace")
        middle = b"\n[... %d bytes ...]\n" % (beyond - KEPT_TAIL)
        return (bytes(self._head) + middle + bytes(self._tail[-KEPT_TAIL:])).decode("utf-8", "replace")

    def tail(self) -> str:
        """The last part."""
        return (bytes(self._tail) if len(self._tail) >= KEPT_TAIL else bytes(self._head + self._tail))[
            -KEPT_TAIL:
        ].decode("utf-8", "replace")


def run(role: str, repro: Dict[str, Any], settings: Dict[str, Any], bounds: Bounds, made: str = "") -> Run:
    """Run a script in a child of its own and wait for its end, or bring it about.

    What inductor makes is gone with the child, or else goes to the folder ``made`` and is found there.
    """
    scratch = tempfile.mkdtemp(prefix="torchbisect-run-")
    tape = Tape(TAPE_BYTES)
    try:
        caches = made or os.path.join(scratch, "caches")
        job = Job(role, repro, settings, scratch, caches, bounds.memory, bounds.threads)
        began = time.monotonic()
        child, out, err = _fork(job, tape, bounds)
        status, ended_by = _watch(child, out, err, began, bounds)
        seconds = time.monotonic() - began
        entries = tape.entries()
        ending, notes = _ending(entries, status, ended_by)
        if made:
            inductor_cache.cleared(made, whole=ending["how"] in ("finished", "raised", "exited"))
        backends = ending.pop("backends", [])
        ending.update(seconds=round(seconds, 4), output=out.tail()[-KEPT_TAIL:], errors=err.tail())
        return Run(ending, entries, out.text(), notes, backends, tape.lost)
    finally:
        tape.close()
        shutil.rmtree(scratch, ignore_errors=True)


def _fork(job: Job, tape: Tape, bounds: Bounds) -> Tuple[int, _Capture, _Capture]:
    out_reader, out_writer = os.pipe()
    err_reader, err_writer = os.pipe()
    gc.collect(0)
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        try:
            os.setsid()
            empty = os.open(os.devnull, os.O_RDONLY)
            os.dup2(empty, 0)
            os.dup2(out_writer, 1)
            os.dup2(err_writer, 2)
            # Nothing of the agent's stays open: neither its own streams nor another run's pipes.
            os.closerange(3, 4096)
        finally:
            work(job, tape)
    os.close(out_writer)
    os.close(err_writer)
    captures = _Capture(out_reader, bounds.output), _Capture(err_reader, bounds.output)
    for capture in captures:
        os.set_blocking(capture.reader, False)
    return (child, *captures)


def _watch(
    child: int, out: _Capture, err: _Capture, began: float, bounds: Bounds
) -> Tuple[Optional[int], Optional[str]]:
    """Wait for the child: its wait status, and which limit ended it, if one did."""
    status: Optional[int] = None
    ended_by: Optional[str] = None
    clock = processes.Clock(bounds.seconds)
    look = began + FIRST_LOOK
    pause = 0.001
    try:
        while True:
            readers = [capture.reader for capture in (out, err) if capture.open]
            ready = select.select(readers, [], [], pause)[0]
            for capture in (out, err):
                if capture.reader in ready:
                    capture.drain()
            found, code = os.waitpid(child, os.WNOHANG)
            if found:
                status = code
                break
            now = time.monotonic()
            pause = 0.001 if ready else min(pause * 1.5, 0.02)
            if now > look:
                look = now + 0.2
                ended_by = processes.beyond(child, bounds.memory, bounds.processes)
                if clock.is_up(child):
                    ended_by = "timed-out"
                if ended_by:
                    break
    finally:
        processes.end_session(child, reap=status is None)
        _drain_rest(out, err)
        os.close(out.reader)
        os.close(err.reader)
    return status, ended_by


def _drain_rest(*captures: _Capture) -> None:
    """What is still in the pipes; a process that got away may hold them open, so don't wait for their end."""
    for capture in captures:
        for _ in range(64):
            if not capture.open or not select.select([capture.reader], [], [], 0)[0]:
                break
            capture.drain()


def _ending(entries: List[Entry], status: Optional[int], ended_by: Optional[str]) -> Tuple[Dict[str, Any], List[str]]:
    """How the run ended, from its own last word and from how the process went."""
    last = next((entry.facts for entry in reversed(entries) if entry.facts.get("e") == "end"), None)
    broken = next((entry.facts for entry in entries if entry.facts.get("e") == "broken"), None)
    labels = {entry.facts.get("label") for entry in entries if entry.facts.get("e") == "begin"}
    said: Dict[str, Any] = dict(last["ending"]) if last else {"compiled": len(labels)} if labels else {}
    notes = list(said.pop("notes", ()))
    ending = {**said}
    if ended_by == "timed-out":
        return {**ending, "how": "timed-out", "raised": None}, notes
    if ended_by is not None:
        notes.append("ended by the limit on {}".format(ended_by))
        return {**ending, "how": "out-of-memory" if ended_by == "memory" else "lost", "raised": None}, notes
    if status is not None and os.WIFSIGNALED(status):
        name = signal.Signals(os.WTERMSIG(status)).name if os.WTERMSIG(status) < 32 else str(os.WTERMSIG(status))
        return {**ending, "how": "signalled", "signal": name, "raised": None}, notes
    code = os.WEXITSTATUS(status) if status is not None else None
    if broken is not None and not last:
        notes.append(
            "the agent's own part failed: {}: {}".format(broken["raised"]["name"], broken["raised"]["message"])
        )
        return {"how": "lost"}, notes
    if last and (code == 0 or said.get("how") == "exited"):
        return ending, notes
    if code is not None:
        # os._exit in C, or after the script's own end
        return {**ending, "how": "exited", "status": code, "raised": None}, notes
    return {**ending, "how": "lost"}, notes
