"""The folder of a run's results: what is in it is usable at every moment."""

from __future__ import annotations

from pathlib import Path

from torchbisect.containers.store.disk import writable_directory
from torchbisect.reports import files
from torchbisect.reports.model.report import Report

JOURNAL = "journal.jsonl"
TRAJECTORY = "trajectory"


class Workspace:
    """The folder ``--out``.

    Raises:
        InputError: it can't be made or written to.
        DiskFull: there is no room in it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = writable_directory(folder, option="--out")

    @property
    def journal(self) -> Path:
        """Every question that was answered, so that the same command goes on where it stopped."""
        return self.folder / JOURNAL

    def save_minimal(self, source: str) -> None:
        """Keep the smallest script so far; a reader sees the old one or the new one, never a half."""
        files.replace_text(self.folder / files.MINIMAL, source)

    def save_step(self, number: int, source: str) -> None:
        """Keep a script on the way to the smallest, by its number."""
        folder = self.folder / TRAJECTORY
        folder.mkdir(exist_ok=True)
        files.replace_text(folder / f"{number:04}.py", source)

    def save(self, report: Report) -> tuple[Path, ...]:
        """Write all that a report is rendered to; returns the files."""
        return files.write(report, self.folder)
