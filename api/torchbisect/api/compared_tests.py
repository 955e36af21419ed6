"""Run each test that calls compiled code a second time without compiling, and fail it where the two differ."""

from __future__ import annotations

import inspect
import re
from collections import Counter
from collections.abc import Generator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

from torchbisect.api.in_process import Recording, compare_runs, installed_recorder, recording
from torchbisect.api.judged import Judged, judge, shows
from torchbisect.api.script.call_script import CallScript, write_call
from torchbisect.api.script.definitions import NotWritable
from torchbisect.api.script.recorded_call import RecordedCall
from torchbisect.probe.agent.run.fork import Run
from torchbisect.probe.judge.classify import Mismatch

_PLACE = re.compile(r"(call|backward) (\d+)")
_TITLE = "torchbisect"


@dataclass(frozen=True)
class Comparison:
    """The result for one test, as it travels with the test's report.

    Attributes:
        verdict: ``mismatch``, ``none`` or ``untestable``.
        text: the mismatch in words and what to do next, or the reason of an ``untestable``.
    """

    verdict: str
    text: str = ""


class ComparedTests:
    """The part of the plugin that is active with ``--torchbisect``."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._out = Path(config.getoption("--torchbisect-out"))
        self._results: Counter[str] = Counter()
        self._reasons: Counter[str] = Counter()
        self._recording: Recording | None = None
        installed_recorder()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        """Run a test, and if it calls compiled code run it without compiling and compare."""
        if not isinstance(item, pytest.Function):
            return None
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        run, reports = self._run(item, nextitem, "compiled")
        call = next((report for report in reports if report.when == "call"), None)
        if call is not None and run.ending["compiled"]:
            compared = self._compare(item, nextitem, run)
            _add_to(call, compared)
        for report in reports:
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Keep the exception that ends a test's body."""
        made = self._recording
        if made is None:
            return (yield)
        try:
            return (yield)
        except pytest.skip.Exception:
            raise
        except Exception as error:
            made.error = error
            raise

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count the result of a test; with pytest-xdist this is the process that shows them."""
        found = getattr(report, "torchbisect", None)
        if found is not None:
            self._results[found["verdict"]] += 1
            if found["verdict"] == "untestable":
                self._reasons[found["text"]] += 1

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say how many tests were compared, and why others were not."""
        total = sum(self._results.values())
        terminalreporter.write_sep("-", "torchbisect")
        tests = "1 test calls" if total == 1 else f"{total} tests call"
        mismatches = self._results["mismatch"]
        shown = "1 mismatch" if mismatches == 1 else f"{mismatches} mismatches"
        terminalreporter.write_line(f"{tests} compiled code: {shown}, {self._results['none']} as in eager")
        for reason, count in self._reasons.most_common():
            terminalreporter.write_line(f"{count} not compared: {reason}")

    def _run(
        self, item: pytest.Function, nextitem: pytest.Item | None, role: str
    ) -> tuple[Run, list[pytest.TestReport]]:
        """Run a test with its own fixtures made anew; without a next test those of its module and session too."""
        with recording(role, [str(item.path.parent)]) as self._recording:
            made = self._recording
            with made.mode():
                reports = runtestprotocol(item, log=False, nextitem=nextitem)
        self._recording = None
        item._initrequest()
        assert made.run is not None
        return made.run, reports

    def _compare(self, item: pytest.Function, nextitem: pytest.Item | None, compiled: Run) -> Comparison:
        judged = self._judged(item, nextitem, compiled)
        if judged.mismatch is not None:
            # A fixture of a module or a session was made in the first run, and has what that run did to it.
            item.session._setupstate.teardown_exact(None)
            nextitem = None
            judged = self._judged(item, nextitem, self._run(item, nextitem, "compiled")[0])
        if judged.untestable is not None and not _fails_alike(judged):
            return Comparison("untestable", judged.untestable.detail.splitlines()[0][:200])
        if judged.mismatch is None:
            return Comparison("none")
        script = self._script(item, nextitem, judged.mismatch)
        return Comparison("mismatch", self._explained(item, judged, script))

    def _judged(self, item: pytest.Function, nextitem: pytest.Item | None, compiled: Run) -> Judged:
        source = _source_of(item)
        return judge(compare_runs(lambda role: self._run(item, nextitem, role)[0], source, compiled), source)

    def _script(self, item: pytest.Function, nextitem: pytest.Item | None, mismatch: Mismatch) -> Path | None:
        """Write the call that shows the mismatch as a script; ``None`` if a script of one call does not show it."""
        place = _PLACE.match(mismatch.place)
        written: list[CallScript | None] = []
        number = int(place.group(2)) if place is not None and place.group(1) == "call" else 0
        backward = place is not None and (place.group(1) == "backward" or mismatch.kind == "gradients")

        def write(call: RecordedCall) -> None:
            if call.number == number:
                try:
                    written.append(write_call(call, backward=backward, title=f"From {item.nodeid}: {mismatch.summary}"))
                except NotWritable:
                    written.append(None)

        installed_recorder().before_call = write
        try:
            self._run(item, nextitem, "eager")
        finally:
            installed_recorder().before_call = None
        script = written[0] if written else None
        if script is None or not shows(script, mismatch):
            return None
        return script.save(self._out / re.sub(r"[^\w.-]+", "-", item.nodeid).strip("-"))

    def _explained(self, item: pytest.Function, judged: Judged, script: Path | None) -> str:
        assert judged.mismatch is not None
        lines = [f"{judged.mismatch.summary}"]
        lines += [f"note: {note}" for note in judged.observation.notes]
        lines.append(f"next: torchbisect run {script if script is not None else item.nodeid}")
        return "\n".join(lines)


def _add_to(report: pytest.TestReport, compared: Comparison) -> None:
    """Put the result of the comparison in a test's report: a passed test with a mismatch fails."""
    report.torchbisect = asdict(compared)  # type: ignore[attr-defined]
    if compared.verdict != "mismatch":
        return
    if report.outcome == "passed" and not hasattr(report, "wasxfail"):
        report.outcome, report.longrepr = "failed", f"{_TITLE}: {compared.text}"
        report.sections = [section for section in report.sections if not _is_trace(section[1])]
    else:
        report.sections.append((_TITLE, compared.text))


def _is_trace(text: str) -> bool:
    """Return True for a captured log with nothing but torch's structured trace: an empty line an event."""
    return all("torch.__trace:" in line for line in text.splitlines())


def _fails_alike(judged: Judged) -> bool:
    """Return True for a test that fails with and without compiling, and shows no difference up to there."""
    reason = judged.untestable.reason if judged.untestable is not None else ""
    return reason == "fails-in-eager" and not judged.observation.differences


def _source_of(item: pytest.Function) -> str:
    try:
        return inspect.getsource(item.module)
    except (OSError, TypeError):
        return ""
