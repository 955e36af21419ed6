"""Jobs on this machine: as many workers as wanted, each a process that is started again when it dies."""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
from collections.abc import Generator, Sequence
from pathlib import Path

from torchbisect.containers.process.processes import HostProcess
from torchbisect.core.errors import InputError
from torchbisect.triage.jobs import Done, Task

#: A job whose worker died is run once more in a fresh one: it may have been another's fault.
TRIES = 2
_LOOK = 3600.0
# A worker runs strangers' scripts below it: what speaks for the user stays out of it.
_SECRETS = ("GITHUB_TOKEN", "GH_TOKEN")


class Worker:
    """The process that runs jobs, from the side of who gives them; for one thread, but for ``close``.

    Args:
        journal: where it keeps its answers.
    """

    def __init__(self, journal: Path) -> None:
        self._journal = journal
        self._process: HostProcess | None = None
        self._closed = False

    def run(self, task: Task) -> Done:
        """Have a job run, whatever becomes of the process."""
        words = "it said nothing"
        for _ in range(TRIES):
            if self._closed:
                break
            try:
                process = self._started()
                process.send(json.dumps(task.to_json()).encode("ascii") + b"\n")
                while (line := process.read_line(_LOOK)) is None:
                    pass
                if line:
                    return Done.from_json(json.loads(line))
            except (BrokenPipeError, ValueError, KeyError, TypeError, InputError):
                pass  # gone, or what it says is no answer
            words = self._end() or words
        return Done(task.job.name, trouble=f"its process died {TRIES} times: {words}", again=True)

    def _started(self) -> HostProcess:
        if self._process is None:
            kept = {name: value for name, value in os.environ.items() if name not in _SECRETS}
            command = [sys.executable, "-m", "torchbisect.triage.worker", str(self._journal)]
            self._process = HostProcess(command, environment=kept)
        return self._process

    def _end(self) -> str:
        """End the process; returns the last line that it wrote to standard error, or the signal that ended it."""
        process, self._process = self._process, None
        if process is None:
            return ""
        errors = process.errors().strip().splitlines()
        status = process.kill()
        return errors[-1] if errors else f"status {status}"

    def close(self) -> None:
        """End the process and all it started."""
        self._closed = True
        self._end()


def run_here(tasks: Sequence[Task], journal: Path, workers: int) -> Generator[Done]:
    """Run jobs on this machine; each is given out as it is done.

    Args:
        tasks: the jobs.
        journal: where their answers are kept, so that a job that was cut short goes on where it stopped.
        workers: so many at once.
    """
    waiting: queue.SimpleQueue[Task | None] = queue.SimpleQueue()
    ended: queue.SimpleQueue[Done | BaseException] = queue.SimpleQueue()
    crew = [Worker(journal) for _ in range(min(workers, len(tasks)))]

    def serve(worker: Worker) -> None:
        try:
            while (task := waiting.get()) is not None:
                ended.put(worker.run(task))
        except BaseException as error:
            ended.put(error)

    for task in tasks:
        waiting.put(task)
    threads = [threading.Thread(target=serve, args=(worker,), daemon=True) for worker in crew]
    for thread in threads:
        waiting.put(None)
        thread.start()
    try:
        for _ in tasks:
            done = ended.get()
            if isinstance(done, BaseException):
                raise done
            yield done
    finally:
        for worker in crew:
            worker.close()
