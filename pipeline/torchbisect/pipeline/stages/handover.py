"""The handover stage: the shrunk script in the forms that PyTorch's developers ask for, each seen to work."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from torchbisect.containers.store.disk import disk_errors
from torchbisect.core.build import Build
from torchbisect.core.errors import InstallFailed
from torchbisect.core.repro import Settings, fingerprint
from torchbisect.pipeline.session import Session
from torchbisect.pipeline.stages.minimize import ShrunkScript
from torchbisect.probe.oracle import Oracle
from torchbisect.probe.standalone_run import PlainRun, run_plain
from torchbisect.probe.traced_run import trace_plain
from torchbisect.reports import files
from torchbisect.reports.render.pytorch_test import PytorchTest, pytorch_tests, test_place
from torchbisect.reports.trace_log import TRACE, names_machine, scrubbed_trace

TEST = "test_minimal.py"
_COUNTED = re.compile(r"FAILED \(([^)]*)\)")


def begin_trace(session: Session, oracle: Oracle, shrunk: ShrunkScript) -> None:
    """Trace the shrunk script in the background, for ``write_trace``."""
    if not _has_trace(session, oracle, shrunk):
        session.background.begin(_trace_key(oracle, shrunk), partial(_trace, session, oracle, shrunk))


def write_trace(session: Session, oracle: Oracle, shrunk: ShrunkScript) -> str:
    """Write the structured trace of the shrunk script on the failing build, without paths of this machine.

    Return a line about it for the reader of the report. A trace that is there from the same script stays.
    """
    build, place = oracle.environment.build, session.workspace.folder / TRACE
    if not _has_trace(session, oracle, shrunk):
        session.display.status("tracing the shrunk script")
        text = session.background.result(_trace_key(oracle, shrunk), partial(_trace, session, oracle, shrunk))
        if not text:
            _remove(place)
            return f"torch {build} wrote no trace of the shrunk script"
        text = scrubbed_trace(text)
        if names_machine(text):
            _remove(place)
            return "no trace is written: a path of this machine could not be removed from it"
        files.replace_text(place, text)
        session.journal.put(_trace_key(oracle, shrunk), True)
    return f"{TRACE} is the shrunk script's TORCH_TRACE on {build}: pip install tlparse && tlparse {TRACE} shows it"


def _remove(place: Path) -> None:
    with disk_errors(place, option="--out"):
        place.unlink(missing_ok=True)


def _trace_key(oracle: Oracle, shrunk: ShrunkScript) -> str:
    return fingerprint("trace", oracle.environment.build.name, shrunk.text)


def _has_trace(session: Session, oracle: Oracle, shrunk: ShrunkScript) -> bool:
    return bool(session.journal.get(_trace_key(oracle, shrunk))) and (session.workspace.folder / TRACE).is_file()


def _trace(session: Session, oracle: Oracle, shrunk: ShrunkScript) -> str:
    files, cancel = shrunk.repro_for_people.files, session.background.cancel
    return trace_plain(oracle.environment, shrunk.text, timeout=oracle.limits.longest, cancel=cancel, files=files)


def write_test(
    session: Session, oracle: Oracle, shrunk: ShrunkScript, component: str | None, good: Sequence[Build]
) -> str | None:
    """Write the shrunk script as a test of PyTorch's suite; return the reason if none can be written.

    A test is kept if all of it fails on the failing build, and passes there without compiling and on each good build.
    """
    kind = shrunk.mismatch.kind.value if shrunk.mismatch is not None else "mismatch"
    summary = shrunk.mismatch.summary.splitlines()[0] if shrunk.mismatch is not None else "compiled differs from eager"
    name = re.sub(r"\W+", "_", f"compiled_{kind}")
    reason = "no form of it fails as the script does"
    for number, test in enumerate(pytorch_tests(shrunk.text, name=name, summary=summary[:100], component=component), 1):
        session.display.status(f"trying the shrunk script as a test, form {number}")
        run = _run(oracle, test, shrunk)
        if _lacks_module(run):
            return f"it can't be run: {run.last_words}: install that beside torch, or name a release with --torch"
        if _failures(run) != test.tests or _run(oracle, test, shrunk, compiles=False).failed:
            continue
        passed, bad = _passes_on(session, test, shrunk, good)
        if bad:
            reason = f"it fails on torch {bad[0]} too, where the script works"
            continue
        files.replace_text(session.workspace.folder / TEST, test.text)
        where = f"fails on torch {oracle.environment.build}, passes there without compiling"
        where += f" and on {' and '.join(map(str, passed))}" if passed else ""
        session.notify(f"{TEST} {where}; it belongs to {test_place(component)}")
        return None
    return reason


def _run(oracle: Oracle, test: PytorchTest, shrunk: ShrunkScript, *, compiles: bool = True) -> PlainRun:
    return run_plain(
        oracle.environment,
        test.text,
        timeout=oracle.limits.longest,
        name=TEST,
        settings=Settings() if compiles else None,
        files=shrunk.repro_for_people.files,
    )


def _lacks_module(run: PlainRun) -> bool:
    """Return True if a package is missing: an installed torch may be without what its test helpers import."""
    return "No module named" in run.last_words


def _failures(run: PlainRun) -> int:
    """Return the number of tests that failed, as unittest counts them."""
    found = _COUNTED.findall(run.output)
    return sum(map(int, re.findall(r"(?:failures|errors)=(\d+)", found[-1]))) if found and run.failed else 0


def _passes_on(
    session: Session, test: PytorchTest, shrunk: ShrunkScript, builds: Sequence[Build]
) -> tuple[list[Build], list[Build]]:
    """Return the builds on which a test passes, and those on which it fails; those that can't run it are in neither."""
    passed: list[Build] = []
    failed: list[Build] = []
    for build in builds:
        session.display.status(f"running the test on torch {build}")
        try:
            with session.oracle(build) as oracle:
                run = _run(oracle, test, shrunk)
                if not _lacks_module(run):
                    (failed if run.failed else passed).append(build)
        except InstallFailed:
            continue
    return passed, failed
