"""The confirm stage: the shrunk script under plain Python, on the failing build and on both sides of each boundary."""

from __future__ import annotations

from collections.abc import Iterable

from torchbisect.core.build import Build
from torchbisect.core.errors import InstallFailed
from torchbisect.pipeline.session import Session
from torchbisect.probe.oracle import Oracle
from torchbisect.probe.standalone_run import PlainRun, run_plain

#: The runs in fresh processes that must fail before a script is said to stand alone.
RUNS = 3


def confirm_standalone(oracle: Oracle, text: str) -> tuple[tuple[PlainRun, bool], ...] | None:
    """Run a script under plain Python on the failing build.

    Return the runs, each with True if ``torch.compile`` was switched off; ``None`` unless the script passes without it
    and fails every time with it.
    """
    eager = run_plain(oracle.environment, text, timeout=oracle.limits.longest, compiled=False)
    if eager.status != 0:
        return None
    runs = [(eager, True)]
    for _ in range(RUNS):
        run = run_plain(oracle.environment, text, timeout=oracle.limits.longest)
        if run.status == 0:
            return None
        runs.append((run, False))
    return tuple(runs)


def confirm_on_builds(session: Session, text: str, builds: Iterable[Build]) -> list[tuple[Build, PlainRun]]:
    """Run a script under plain Python on other builds; builds that can't be installed are left out."""
    runs = []
    for build in builds:
        try:
            session.display.status(f"running the shrunk script on torch {build}")
            with session.oracle(build) as oracle:
                runs.append((build, run_plain(oracle.environment, text, timeout=oracle.limits.longest)))
        except InstallFailed:
            continue
    return runs
