"""The localize stage: the part of the compiler that shows the mismatch, the cheapest settings, and the pass."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace

from torchbisect.containers.environment import Environment
from torchbisect.core.repro import Repro, Settings, fingerprint
from torchbisect.core.version import __version__
from torchbisect.pipeline.session import Session
from torchbisect.pipeline.stages.observe import Observed, count_runs
from torchbisect.probe.localize.backends import LADDER, Localization, localize
from torchbisect.probe.localize.compiler_bisector import PassFound, find_pass
from torchbisect.probe.oracle import Oracle

# The backends with parts that torch's own bisector can switch off.
_BACKENDS_WITH_PASSES = LADDER[2:]


@dataclass(frozen=True)
class Localized:
    """The observation with its runs counted, and the settings that are used from here on.

    Attributes:
        observed: the observation; its verdict is ``flaky`` if not every run shows the mismatch.
        settings: the cheapest settings on which every run shows it.
        localization: the part of the compiler; ``None`` for a flaky script.
    """

    observed: Observed
    settings: Settings
    localization: Localization | None = None


def localize_mismatch(session: Session, oracle: Oracle, repro: Repro, observed: Observed) -> Localized:
    """Find the part of the compiler that shows a mismatch, and check that every run shows it."""
    mismatch = observed.certain_mismatch
    if mismatch is None:
        return Localized(observed, Settings())
    found = localize(oracle, repro, mismatch, session.display.status)
    counted = count_runs(session, oracle, repro, observed, found.settings)
    if counted.verdict == "flaky":
        # The cheapest settings may be to blame, or the warm processes, which are not asked from here on.
        counted = count_runs(session, oracle, repro, observed, Settings())
        if counted.verdict == "flaky":
            return Localized(counted, Settings())
        found = replace(localize(oracle, repro, mismatch, session.display.status), settings=Settings())
    session.display.result(
        f"backend {found.backend or 'as given'}"
        + (f", component {found.component}" if found.component else "")
        + (f"; goes away with {found.fixed_by[0]}" if found.fixed_by else "")
    )
    return Localized(counted, found.settings, found)


def find_compiler_pass(
    session: Session, environment: Environment, localization: Localization, script: str, seed: int
) -> PassFound | None:
    """Ask torch's own bisector for the pass at fault in a script that fails only when compiled, or return ``None``.

    An answer for another backend than the measured one is dropped: the script failed there for another reason.
    Raises ``DiskFull`` if there is no room for the script.
    """
    if localization.backend not in _BACKENDS_WITH_PASSES:
        return None
    key = fingerprint("pass", __version__, asdict(environment.facts), environment.build.version, script, seed)
    known = session.journal.get(key)
    if known is None:
        session.display.status("asking torch's own compiler_bisector")
        answer = find_pass(environment, script, seed=seed)
        known = {"found": None if answer is None else asdict(answer)}
        session.journal.put(key, known)
    found = None if known["found"] is None else PassFound(**known["found"])
    if found is None or not found.backend.startswith(localization.backend):
        return None
    session.display.result(f"torch's compiler_bisector: {found.text}")
    return found
