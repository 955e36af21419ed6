"""Worker process of a triage or a watch: it runs one task after another and keeps the resources that they share.

``python -m torchbisect.triage.worker JOURNAL`` reads one task a line and writes one result a line. The end of its
standard input means that its parent has ended. It then stops in the middle of a run, as after ``Ctrl-C``.
"""

from __future__ import annotations

import functools
import json
import os
import queue
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TextIO, cast

from torchbisect.core.errors import Exit, InputError, InstallFailed, TorchbisectError
from torchbisect.core.scrub import scrub
from torchbisect.pipeline.local_provider import LocalProvider
from torchbisect.pipeline.options import Options
from torchbisect.pipeline.progress import Display
from torchbisect.pipeline.run import Pipeline
from torchbisect.pipeline.shared_resources import SharedResources
from torchbisect.probe.journal import Journal
from torchbisect.reports.files import replace_text
from torchbisect.triage.candidates import run_first_that_fails
from torchbisect.triage.jobs import IssueTask, Task, TaskResult
from torchbisect.triage.ledger.questions import WatchTask, answer
from torchbisect.triage.task_log import TaskLog
from torchbisect.triage.tasks import task_from_json


def run_task(task: IssueTask, shared: SharedResources, log: TaskLog) -> TaskResult:
    """Run one issue. Raises nothing but ``KeyboardInterrupt``."""

    def work() -> TaskResult:
        display = Display(stream=_stream(log))

        def pipeline_of(options: Options) -> Pipeline:
            return Pipeline(options, display, functools.partial(LocalProvider, shared=shared), task.known)

        pipeline, code = run_first_that_fails(_write_scripts(task), pipeline_of, display.warn)
        report = pipeline.report
        if code == Exit.INTERRUPTED:
            raise KeyboardInterrupt
        if code == Exit.MACHINE:
            return TaskResult(task.name, report, report.reason or "the machine failed", retry=True)
        return TaskResult(task.name, report)

    return with_log(task, log, work)


def answer_task(task: WatchTask, shared: SharedResources, log: TaskLog) -> TaskResult:
    """Answer one question of the watch. Raises nothing but ``KeyboardInterrupt``."""
    return with_log(task, log, lambda: TaskResult(task.name, answer=answer(task, shared, _stream(log)).to_json()))


def with_log(task: Task, log: TaskLog, work: Callable[[], TaskResult]) -> TaskResult:
    """Do a task with its log open; an error becomes its result."""
    name = task.name
    try:
        with log.of(task.options.out):
            return work()
    except (InputError, InstallFailed) as error:
        return TaskResult(name, problem=scrub(str(error)))
    except TorchbisectError as error:
        return TaskResult(name, problem=scrub(str(error)), retry=True)
    except Exception as error:
        sys.stderr.write(scrub(traceback.format_exc()))
        problem = scrub(f"a fault of torchbisect: {type(error).__name__}: {error}")
        return TaskResult(name, problem=problem, retry=True)


def _write_scripts(task: IssueTask) -> list[Options]:
    """Write the scripts of an issue, and return the options to run each."""
    options = task.options
    if task.job.path is not None or options.script is None:
        return [options]
    names = [options.script, *(options.script.with_name(f"repro-{n}.py") for n in range(2, len(task.job.others) + 2))]
    for path, text in zip(names, (task.job.source or "", *task.job.others)):
        replace_text(path, text)
    return [replace(options, script=path) for path in names]


def _stream(log: TaskLog) -> TextIO:
    # A TextIOBase is a TextIO in everything but its type.
    return cast("TextIO", log)


def serve(tasks: queue.SimpleQueue[bytes], answers: int, shared: SharedResources) -> None:
    """Run tasks and write their results to the file descriptor ``answers``, until an empty task comes."""
    log = TaskLog()
    while line := tasks.get():
        task = task_from_json(json.loads(line))
        result = answer_task(task, shared, log) if isinstance(task, WatchTask) else run_task(task, shared, log)
        data = json.dumps(result.to_json()).encode("ascii") + b"\n"
        while data:
            data = data[os.write(answers, data) :]


def main(journal: str) -> None:
    """Serve on the standard streams, and send all other output of this process to standard error."""
    answers = os.dup(1)
    os.dup2(2, 1)
    tasks: queue.SimpleQueue[bytes] = queue.SimpleQueue()

    def read() -> None:
        for line in sys.stdin.buffer:
            tasks.put(line)
        tasks.put(b"")
        os.kill(os.getpid(), signal.SIGTERM)

    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, stop)
    shared = SharedResources(Journal(Path(journal)))
    try:
        threading.Thread(target=read, daemon=True).start()
        serve(tasks, answers, shared)
    except (KeyboardInterrupt, BrokenPipeError):
        pass
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        shared.close()


if __name__ == "__main__":
    main(sys.argv[1])
