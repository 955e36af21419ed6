"""Options of a probe."""

from __future__ import annotations

from dataclasses import dataclass, field

from torchbisect.probe.judge.slowness import Bounds
from torchbisect.probe.limits import Limits


@dataclass(frozen=True)
class ProbeOptions:
    """Options of a probe.

    Attributes:
        repeat: the number of runs behind each answer; runs that disagree are ``untestable``, reason ``flaky``.
        scope: a text for whatever else decides how a script runs here and is not in the environment's facts:
            packages installed beside torch, a container's image. It is part of every key of the journal.
        bounds: on time and recompiles, for scripts that are right but slow.
        check_every: after this many answers one is compared with that of a fresh process; 0 for never.
    """

    limits: Limits = field(default_factory=Limits)
    repeat: int = 1
    scope: str = ""
    bounds: Bounds = field(default_factory=Bounds)
    check_every: int = 100
