"""A worker's tasks share build sources, and each task has a log of its own."""

from __future__ import annotations

from pathlib import Path
from typing import TextIO, cast

from torchbisect.pipeline.options import Options
from torchbisect.pipeline.progress import Display
from torchbisect.pipeline.shared_resources import SharedResources
from torchbisect.probe.journal import Journal
from torchbisect.triage.jobs import TaskResult
from torchbisect.triage.ledger.questions import Asks, WatchTask
from torchbisect.triage.task_log import LOG, TaskLog
from torchbisect.triage.worker import with_log


def test_shared_sources_write_into_the_log_of_the_present_task(tmp_path: Path) -> None:
    """The sources that the first task made tell the second of builds that are removed for want of room."""
    shared, log = SharedResources(Journal()), TaskLog()
    for name in ("one", "two"):
        task = WatchTask(name, Asks.HEALTH, "2.8.0", Options(Path(), out=tmp_path / name))

        def work(task: WatchTask = task) -> TaskResult:
            sources = shared.sources(task.options, Display(stream=cast("TextIO", log)))
            sources.display.warn(f"made room for {task.name}")
            return TaskResult(task.name)

        assert with_log(task, log, work).problem == ""
    assert [(tmp_path / name / LOG).read_text().split()[-1] for name in ("one", "two")] == ["one", "two"]
