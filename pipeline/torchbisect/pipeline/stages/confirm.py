"""The confirm stage: the shrunk script under plain Python, on the failing build and on both sides of each boundary."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial

from torchbisect.core.build import Build
from torchbisect.core.errors import InstallFailed
from torchbisect.core.repro import Repro
from torchbisect.pipeline.session import Session
from torchbisect.probe.oracle import Oracle
from torchbisect.probe.standalone_run import PlainRun, plain_runs_side_by_side, run_plain

CONFIRMING = "confirming under plain python"


def confirm_standalone(
    session: Session, oracle: Oracle, repro: Repro, meanwhile: Callable[[], object] = lambda: None
) -> tuple[tuple[PlainRun, bool], ...] | None:
    """Run a script under plain Python on the failing build; ``meanwhile`` is called once the runs have begun.

    Return the runs, each with True if ``torch.compile`` was switched off; ``None`` unless the script passes without it
    and fails with it. One run of each shows that: further runs have shown the mismatch in two processes of the probe,
    and a run here costs as much as twenty of those.
    """
    limit = oracle.limits.longest
    switched_off = (True, False)
    runs: list[tuple[PlainRun, bool]] = []
    with plain_runs_side_by_side(
        oracle.environment, repro.source, switched_off, timeout=limit, files=repro.files
    ) as plain_runs:
        meanwhile()
        for number, (run, off) in enumerate(zip(plain_runs, switched_off), 1):
            session.display.status(f"{CONFIRMING}, {number} of {len(switched_off)} runs", number, len(switched_off))
            if run.failed == off:
                return None
            runs.append((run, off))
    return tuple(runs)


def begin_on_build(session: Session, repro: Repro, build: Build) -> None:
    """Run a script under plain Python on a build in the background, for ``confirm_on_builds``."""
    session.background.begin(("plain python", repro, build), partial(_run_on_build, session, repro, build))


def confirm_on_builds(session: Session, repro: Repro, builds: Iterable[Build]) -> list[tuple[Build, PlainRun]]:
    """Run a script under plain Python on other builds; builds that can't be installed are left out."""
    runs = []
    wanted = list(builds)
    for number, build in enumerate(wanted):
        words = f"running the shrunk script on torch {build}, {number + 1} of {len(wanted)}"
        session.display.status(words, number, len(wanted))
        with suppress(InstallFailed):
            act = partial(_run_on_build, session, repro, build)
            runs.append((build, session.background.result(("plain python", repro, build), act)))
    return runs


def _run_on_build(session: Session, repro: Repro, build: Build) -> PlainRun:
    with session.oracle(build) as oracle:
        return run_plain(
            oracle.environment,
            repro.source,
            timeout=oracle.limits.longest,
            cancel=session.background.cancel,
            files=repro.files,
        )
