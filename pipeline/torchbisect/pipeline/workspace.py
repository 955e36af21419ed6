"""The folder of a run's results; its files are complete at every moment."""

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
        InputError: the folder can't be made or written to.
        DiskFull: there is no room in it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = writable_directory(folder, option="--out")

    @property
    def journal(self) -> Path:
        """The file of all answers, from which the same command continues where it stopped."""
        return self.folder / JOURNAL

    def save_minimal(self, source: str) -> None:
        """Save the smallest script so far; a reader sees either the old text or the new one."""
        files.replace_text(self.folder / files.MINIMAL, source)

    def save_step(self, number: int, source: str) -> None:
        """Save one of the scripts on the way to the smallest, by its number."""
        folder = self.folder / TRAJECTORY
        folder.mkdir(exist_ok=True)
        files.replace_text(folder / f"{number:04}.py", source)

    def save(self, report: Report) -> tuple[Path, ...]:
        """Write the report in all its formats, and return the files."""
        return files.write(report, self.folder)
