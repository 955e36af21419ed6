"""A whole run against a table of answers."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from answer_table import Asked, Table, TableProvider

from torchbisect.pipeline.options import Options
from torchbisect.pipeline.progress import Display
from torchbisect.pipeline.run import Pipeline

#: It fails on a build whose table lists a word of it.
SCRIPT = 'unused = 1\nprint("one")\nprint("two")\nprint(unused)\n'


@dataclass(frozen=True)
class Result:
    """The result of one run.

    Attributes:
        code: the exit code, or ``None`` if an error ended the run.
        error: the error that ended the run.
        said: everything that the display showed.
        out: the folder of the results.
        asked: the questions that no journal answered, in order.
    """

    code: int | None
    error: Exception | None
    said: str
    out: Path
    asked: tuple[Asked, ...]

    @property
    def report(self) -> dict[str, Any]:
        """The report on disk."""
        found: dict[str, Any] = json.loads((self.out / "report.json").read_text())
        return found

    @property
    def minimal(self) -> str:
        """The shrunk script on disk."""
        return (self.out / "minimal.py").read_text()

    @property
    def stages(self) -> list[str]:
        """The titles of the stages, in order."""
        return [line for line in self.said.splitlines() if line and not line.startswith((" ", "torchbisect:"))]

    def builds_asked(self, what: str) -> list[str]:
        """The builds that got a kind of question, in order."""
        return [asked.build for asked in self.asked if asked.what == what]


Run = Callable[..., Result]


def run_in(
    folder: Path, table: Table, *, script: str = SCRIPT, repeat: int = 1, known: Collection[str] = (), **typed: Any
) -> Result:
    """Run a script against a table; a second run in the same folder continues the first."""
    (folder / "repro.py").write_text(script)
    typed = {"torch": "2.8.0", "jobs": 1, "channels": ("release",), "verbosity": 1, **typed}
    options = Options(folder / "repro.py", out=folder / "out", repeat=repeat, **typed)
    said = io.StringIO()
    provider = TableProvider(table, folder / "cache", repeat=repeat)
    before = len(table.asked)
    pipeline = Pipeline(options, Display(options.verbosity, said), lambda options, display: provider, known)
    code, error = None, None
    try:
        code = pipeline.execute()
    except Exception as raised:
        error = raised
    assert provider.closed
    assert not +table.leases, "an environment was not released"
    return Result(code, error, said.getvalue(), folder / "out", tuple(table.asked[before:]))
