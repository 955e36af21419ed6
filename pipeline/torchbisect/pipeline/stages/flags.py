"""The flags stage: compiler flags with which the shrunk script is no longer worse by a number."""

from __future__ import annotations

from torchbisect.core.repro import Repro
from torchbisect.pipeline.session import Session
from torchbisect.probe.localize.compiler_flags import Flag, flag_text, flags_for
from torchbisect.probe.measure.helpful_flags import helpful_flags
from torchbisect.probe.measure.measuring_probe import MeasuringProbe
from torchbisect.probe.oracle import Oracle
from torchbisect.reports.model.measurement import FlagEffect


def find_flags(session: Session, oracle: Oracle, repro: Repro) -> tuple[FlagEffect, ...]:
    """Return the flags of inductor that make up for the change, the most helpful first."""
    if not isinstance(oracle, MeasuringProbe):
        return ()
    flags = flags_for("inductor")

    def show(number: int, flag: Flag) -> None:
        session.display.status(f"{number + 1} of {len(flags)}: {flag_text(flag)}")

    return tuple(
        FlagEffect(flag_text(one.flag), one.found.ratio, one.found.low, one.found.high)
        for one in helpful_flags(oracle, repro, flags, show)
    )
