"""Fork a child that runs a script: the agent's side, which watches its limits and collects its record."""

from __future__ import annotations

import gc
import os
import select
import signal
import sys
import tempfile
import time
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from ..capture.recording import MAX_EVENTS
from ..capture.tape import Entry, Tape
from . import inductor_cache, protection, script_processes
from .child import Job, run_child
from .cleaning import remove
from .steady_memory import steady_memory
from .workplace import Place
from .written_files import Watched, WrittenFiles

TAPE_BYTES = 256 << 20
TAIL_BYTES = 64 << 10  # of an output stream
FIRST_CHECK_SECONDS = 0.3
CHECK_SECONDS = 0.2
_READ_BYTES = 1 << 16
_COMPLETED = ("finished", "raised", "exited")


class RunLimits(NamedTuple):
    """The limits of one run.

    Attributes:
        seconds: processor time, or wall time for a run that is idle; see ``script_processes.RunClock``.
        memory: bytes of private memory of the child and all processes that it started.
        output: bytes kept of standard output, and as many of standard error.
        processes: the number of processes at a time.
        tasks: the number of threads of all processes at a time.
        open_files: the number of descriptors that a process may have.
        files, bytes: the number and the size of the files that may be in its folders.
        threads: the number of threads of torch's operators.
    """

    seconds: float
    memory: int
    output: int
    processes: int
    tasks: int
    open_files: int
    files: int
    bytes: int
    threads: int


class Run(NamedTuple):
    """The record of a run.

    Attributes:
        ending: ``observation.Ending`` as JSON.
        entries: the entries of its tape.
        output: the captured part of its standard output.
        notes: remarks for the reader of the report.
        backends: the backends that the script itself asks for.
        dropped_entries: the number of entries that did not fit on the tape.
        is_ended: False if processes of the run can't be ended; no later run may meet them.
    """

    ending: Dict[str, Any]
    entries: List[Entry]
    output: str
    notes: List[str]
    backends: List[str]
    dropped_entries: int
    is_ended: bool

    @property
    def size(self) -> int:
        """Approximate size in bytes."""
        return sum(len(entry.data) for entry in self.entries) + len(self.output) + 4096

    @property
    def may_have_drawn(self) -> bool:
        """False if all calls of what the script compiles are recorded, and none of them drew a random number."""
        events = [entry.facts for entry in self.entries if entry.facts.get("e") in ("call", "backward")]
        calls = [facts for facts in events if facts["e"] == "call"]
        is_whole = self.dropped_entries == 0 and len(events) < MAX_EVENTS and bool(calls)
        return not is_whole or any(facts.get("drew", True) for facts in calls)


class OutputCapture:
    """The first ``head_bytes`` and the last ``TAIL_BYTES`` of an output stream, read from a non-blocking pipe."""

    def __init__(self, reader: int, head_bytes: int) -> None:
        self.reader = reader
        self.is_open = True  # until the writing end is closed
        self._head_bytes = head_bytes
        self._head = bytearray()
        self._tail = bytearray()
        self._dropped = 0

    def read_available(self) -> None:
        """Read one block, if there is one."""
        try:
            block = os.read(self.reader, _READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            block = b""
        if not block:
            self.is_open = False
            return
        room = self._head_bytes - len(self._head)
        self._head += block[:room]
        self._tail += block[max(room, 0) :]
        if len(self._tail) > 4 * TAIL_BYTES:
            self._dropped += len(self._tail) - TAIL_BYTES
            del self._tail[:-TAIL_BYTES]

    def read_rest(self) -> None:
        """Read what is left without waiting, because an escaped process may hold the writing end open."""
        for _ in range(64):
            if not self.is_open or not select.select([self.reader], [], [], 0)[0]:
                break
            self.read_available()

    def text(self) -> str:
        """Return the captured text, which depends on the bytes written and not on the sizes of the blocks read."""
        beyond = self._dropped + len(self._tail)
        if beyond <= 4 * TAIL_BYTES:
            return bytes(self._head + self._tail).decode("utf-8", "replace")
        middle = b"\n[... %d bytes ...]\n" % (beyond - TAIL_BYTES)
        return (bytes(self._head) + middle + bytes(self._tail[-TAIL_BYTES:])).decode("utf-8", "replace")

    def tail(self) -> str:
        """Return the last part of the captured text."""
        enough = len(self._tail) >= TAIL_BYTES
        last = bytes(self._tail) if enough else bytes(self._head + self._tail)
        return last[-TAIL_BYTES:].decode("utf-8", "replace")


def run_in_child(
    role: str,
    repro: Dict[str, Any],
    place: Place,
    settings: Dict[str, Any],
    limits: RunLimits,
    watched: Watched,
    shared_caches: str = "",
    *,
    timed: bool = False,
) -> Run:
    """Run a script in a forked child, and wait until it ends or exceeds a limit.

    Args:
        role: see ``child.Job``.
        repro: ``repro.Repro`` as JSON.
        place: the paths of the run; the script's text is there.
        settings: ``repro.Settings`` as JSON.
        limits: the limits of the run.
        watched: the folders in which its files are counted.
        shared_caches: a folder with the inductor caches of earlier runs, which this run extends. If it is empty, the
            run has caches of its own, which are deleted with it.
        timed: the times of its calls count.
    """
    # A short name, as the sockets of a data loader's workers lie there: their paths have at most 107 bytes.
    scratch = tempfile.mkdtemp(prefix="r-")
    tape = Tape(TAPE_BYTES)
    try:
        caches = shared_caches or os.path.join(scratch, "caches")
        job = Job(role, repro, place, settings, scratch, caches, limits)
        began = time.monotonic()
        written = WrittenFiles(watched, limits.files, limits.bytes)
        child, out, err = _fork(job, tape, limits, timed=timed)
        status, limit, is_ended = _watch(child, out, err, began, limits, written)
        seconds = time.monotonic() - began
        entries = tape.entries()
        ending, notes = _ending_of(entries, status, limit)
        if shared_caches:
            inductor_cache.prune(shared_caches, is_complete=ending["how"] in _COMPLETED)
        backends = ending.pop("backends", [])
        if limit == "timed-out":
            ending["allowed"] = limits.seconds
        ending.update(seconds=round(seconds, 4), output=out.tail()[-TAIL_BYTES:], errors=err.tail())
        return Run(ending, entries, out.text(), notes, backends, tape.dropped, is_ended)
    finally:
        tape.close()
        remove(scratch)


def _fork(job: Job, tape: Tape, limits: RunLimits, *, timed: bool) -> Tuple[int, OutputCapture, OutputCapture]:
    """Start the child; return its process id and the captures of its standard output and standard error."""
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
            # Close every descriptor of the agent: its own streams and the pipes of other runs.
            os.closerange(3, 4096)
            protection.open_memory()
            if timed:
                steady_memory()
        finally:
            run_child(job, tape)
    os.close(out_writer)
    os.close(err_writer)
    captures = OutputCapture(out_reader, limits.output), OutputCapture(err_reader, limits.output)
    for capture in captures:
        os.set_blocking(capture.reader, False)
    return (child, *captures)


def _watch(
    child: int, out: OutputCapture, err: OutputCapture, began: float, limits: RunLimits, written: WrittenFiles
) -> Tuple[Optional[int], Optional[str], bool]:
    """Wait for the child.

    Returns:
        Its wait status, the name of the limit that it exceeded, if it did, and False if processes of it are left.
    """
    status: Optional[int] = None
    limit: Optional[str] = None
    clock = script_processes.RunClock(limits.seconds)
    others = script_processes.count_all()
    next_check = began + FIRST_CHECK_SECONDS
    pause = 0.001
    try:
        while True:
            readers = [capture.reader for capture in (out, err) if capture.is_open]
            ready = select.select(readers, [], [], pause)[0]
            for capture in (out, err):
                if capture.reader in ready:
                    capture.read_available()
            ended, wait_status = os.waitpid(child, os.WNOHANG)
            if ended:
                status = wait_status
                break
            now = time.monotonic()
            pause = 0.001 if ready else min(pause * 1.5, 0.02)
            if now > next_check:
                next_check = now + CHECK_SECONDS
                family, limit = _checked(child, others, limits, written)
                # Last, as on a busy machine the time may be over when the first of many processes are counted.
                limit = limit or ("timed-out" if clock.is_expired(family) else None)
                if limit:
                    break
    finally:
        is_ended = script_processes.end_family(child, is_running=status is None)
        for capture in (out, err):
            capture.read_rest()
        os.close(out.reader)
        os.close(err.reader)
    return status, limit, is_ended


def _checked(child: int, others: int, limits: RunLimits, written: WrittenFiles) -> Tuple[List[int], Optional[str]]:
    """Return the child's family and the limit on processes, threads, memory or files that it exceeds.

    If there are so many more than the ``others`` that were there before, the child's group stands still meanwhile:
    beside a thousand processes that run, it takes minutes to count them.
    """
    stands_still = limits.processes and script_processes.count_all() > others + limits.processes
    if stands_still:
        script_processes.signal_group(child, signal.SIGSTOP)
    # Listing the processes costs most of a check, so it is done once.
    family = script_processes.family_of(child)
    limit = script_processes.exceeded_limit(family, limits.memory, limits.processes, limits.tasks)
    limit = limit or written.exceeded_limit(family)
    if stands_still and limit is None:
        script_processes.signal_group(child, signal.SIGCONT)
    return family, limit


def _ending_of(entries: List[Entry], status: Optional[int], limit: Optional[str]) -> Tuple[Dict[str, Any], List[str]]:
    """Return the ending of a run, as ``observation.Ending`` in JSON, and notes for the reader.

    Args:
        entries: the entries of its tape.
        status: its wait status; ``None`` if it was killed before it ended.
        limit: the limit that it exceeded, if it did.
    """
    last = next((entry.facts for entry in reversed(entries) if entry.facts.get("e") == "end"), None)
    broken = next((entry.facts for entry in entries if entry.facts.get("e") == "broken"), None)
    labels = {entry.facts.get("label") for entry in entries if entry.facts.get("e") == "begin"}
    recorded: Dict[str, Any] = dict(last["ending"]) if last else {"compiled": len(labels)} if labels else {}
    notes = list(recorded.pop("notes", ()))
    if limit == "timed-out":
        return {**recorded, "how": "timed-out", "raised": None}, notes
    if limit is not None:
        notes.append("the run was ended because it exceeded the limit on {}".format(limit))
        how = "out-of-memory" if limit == "memory" else "over-limit"
        return {**recorded, "how": how, "limit": limit, "raised": None}, notes
    if status is not None and os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        name = signal.Signals(number).name if number < 32 else str(number)
        return {**recorded, "how": "signalled", "signal": name, "raised": None}, notes
    code = os.WEXITSTATUS(status) if status is not None else None
    if broken is not None and not last:
        raised = broken["raised"]
        notes.append("the agent failed during the run: {}: {}".format(raised["name"], raised["message"]))
        return {"how": "lost"}, notes
    if last and (code == 0 or recorded.get("how") == "exited"):
        return recorded, notes
    if code is not None:
        # C code called ``_exit``, or an exit handler called ``os._exit`` after the script's end.
        return {**recorded, "how": "exited", "status": code, "raised": None}, notes
    return {**recorded, "how": "lost"}, notes
