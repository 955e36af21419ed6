"""A triage's worker: a process of its own that runs one issue after another, and keeps what they share.

``python -m torchbisect.triage.worker JOURNAL`` reads a task a line and answers each with a line. When its standard
input ends, whoever started it is gone, and it stops in the middle of a run as ``Ctrl-C`` would stop one.
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
from pathlib import Path
from typing import Any

from torchbisect.containers.store.disk import disk_errors
from torchbisect.core.errors import InputError, InstallFailed, TorchbisectError
from torchbisect.core.exit_codes import Exit
from torchbisect.pipeline.local_provider import LocalProvider
from torchbisect.pipeline.progress import Display
from torchbisect.pipeline.run import Pipeline
from torchbisect.pipeline.shared_resources import SharedResources
from torchbisect.probe.journal import Journal
from torchbisect.reports.files import replace_text
from torchbisect.triage.jobs import Done, Task

LOG = "log.txt"


def work(task: Task, shared: SharedResources) -> Done:
    """Run one issue; never raises but for an interrupt."""
    name, folder = task.job.name, task.options.out
    try:
        with disk_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
            log = (folder / LOG).open("a", encoding="utf-8", errors="backslashreplace")
        with log:
            if task.job.path is None and task.options.script is not None:
                replace_text(task.options.script, task.job.source or "")
            pipeline = Pipeline(task.options, Display(stream=log), functools.partial(LocalProvider, shared=shared))
            code = pipeline.execute()
    except (InputError, InstallFailed) as error:
        return Done(name, trouble=str(error))
    except TorchbisectError as error:
        return Done(name, trouble=str(error), again=True)
    except Exception as error:
        traceback.print_exc()
        return Done(name, trouble=f"a fault of torchbisect: {type(error).__name__}: {error}", again=True)
    report = pipeline.report
    if code == Exit.INTERRUPTED:
        raise KeyboardInterrupt
    if code == Exit.MACHINE:
        return Done(name, report, report.reason or "the machine failed", again=True)
    return Done(name, report)


def serve(tasks: queue.SimpleQueue[bytes], answers: int, shared: SharedResources) -> None:
    """Answer tasks until there is an empty one."""
    while line := tasks.get():
        done = work(Task.from_json(json.loads(line)), shared)
        data = json.dumps(done.to_json()).encode("ascii") + b"\n"
        while data:
            data = data[os.write(answers, data) :]


def main(journal: str) -> None:
    """Take the streams away from whoever may print, and serve."""
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
