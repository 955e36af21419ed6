"""Run tasks in worker processes on this machine; a worker that dies is started again."""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import TypeVar

from torchbisect.containers.process.processes import HostProcess, LineTooLong
from torchbisect.containers.python.module_command import module_command
from torchbisect.core.decode import DecodeError, read_json
from torchbisect.core.errors import InputError
from torchbisect.triage.jobs import Task, TaskResult

AnyTask = TypeVar("AnyTask", bound=Task)

#: A task whose worker died runs once more in a new worker: the fault may be another task's.
TRIES = 2
_READ_SECONDS = 3600.0
_END_SECONDS = 30.0
# Workers run strangers' scripts, so they do not get the user's tokens.
_SECRETS = ("GITHUB_TOKEN", "GH_TOKEN")


class WorkerProcess:
    """A client of one worker process with its journal. Only ``close`` may be called from another thread."""

    def __init__(self, journal: Path) -> None:
        self._journal = journal
        self._process: HostProcess | None = None
        self._closed = False

    def run(self, task: Task) -> TaskResult:
        """Run a task in the process; a process that dies is started again, at most ``TRIES`` times."""
        last_error = "it said nothing"
        for _ in range(TRIES):
            if self._closed:
                break
            unread = ""
            try:
                process = self._start()
                process.send(json.dumps(task.to_json()).encode("ascii") + b"\n")
                while (line := process.read_line(_READ_SECONDS)) is None:
                    pass
                if line:
                    return _result(line, task)
            except BrokenPipeError:
                pass  # The process has ended.
            except (LineTooLong, DecodeError, InputError) as error:
                unread = f"its result can't be read: {error}"
            ended = self._end()
            last_error = unread or ended or last_error
        return TaskResult(task.name, problem=f"its process died {TRIES} times: {last_error}", retry=True)

    def _start(self) -> HostProcess:
        if self._process is None:
            environment = {name: value for name, value in os.environ.items() if name not in _SECRETS}
            command = module_command(sys.executable, "torchbisect.triage.worker", str(self._journal))
            self._process = HostProcess(command, environment=environment)
        return self._process

    def _end(self, patience: float = 0.0) -> str:
        """End the process and return its last line on standard error, or the signal that ended it.

        It gets ``patience`` seconds to clean up.
        """
        process, self._process = self._process, None
        if process is None:
            return ""
        errors = process.errors().strip().splitlines()
        status = process.stop(patience)
        return errors[-1] if errors else f"status {status}"

    def close(self) -> None:
        """End the process and all its children; it gets time to end its containers and release its environments."""
        self._closed = True
        self._end(_END_SECONDS)


def _result(line: bytes, task: Task) -> TaskResult:
    result = TaskResult.from_json(read_json(line))
    if result.name != task.name:
        raise DecodeError("the result is of another task")
    return result


def run_on_this_machine(
    tasks: Sequence[AnyTask], journal: Path, workers: int, on_start: Callable[[AnyTask], None] = lambda task: None
) -> Generator[TaskResult]:
    """Run tasks on this machine, and yield each result as it is ready.

    Args:
        tasks: the tasks.
        journal: the journal that all workers share; an interrupted task continues from it.
        workers: the number of workers.
        on_start: is told of each task as it begins, from the thread of its worker.
    """
    waiting: queue.SimpleQueue[AnyTask | None] = queue.SimpleQueue()
    results: queue.SimpleQueue[TaskResult | BaseException] = queue.SimpleQueue()
    processes = [WorkerProcess(journal) for _ in range(min(workers, len(tasks)))]

    def serve(process: WorkerProcess) -> None:
        try:
            while (task := waiting.get()) is not None:
                on_start(task)
                results.put(process.run(task))
        except BaseException as error:
            results.put(error)

    for task in tasks:
        waiting.put(task)
    threads = [threading.Thread(target=serve, args=(process,), daemon=True) for process in processes]
    for thread in threads:
        waiting.put(None)
        thread.start()
    try:
        for _ in tasks:
            result = results.get()
            if isinstance(result, BaseException):
                raise result
            yield result
    finally:
        for process in processes:
            process.close()
