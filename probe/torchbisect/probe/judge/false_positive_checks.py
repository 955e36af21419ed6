"""False-positive checks: a run that a busy machine held up, and a difference that is only rounding."""

from __future__ import annotations

import os

from torchbisect.core.repro import Repro, Settings
from torchbisect.probe.judge.classify import Mismatch

EMULATE_PRECISION_CASTS = "_inductor.config.emulate_precision_casts"
"""The compiler flag that makes inductor round where eager does."""

BUSY_TIME_FACTOR = 4.0
"""Factor by which a compiled run may take longer on a busy machine."""

_LOW_PRECISION_WORDS = ("bfloat16", "float16", "half", "autocast", "float8")
# The largest relative difference of two roundings of one number in low precision.
_LARGEST_ROUNDING = 0.05
# A machine is busy from this many runnable processes for each core on.
_BUSY_LOAD = 1.5


def machine_is_busy() -> bool:
    """Return True if more processes want to run than the machine has cores, so that wall time says little."""
    return os.getloadavg()[0] > _BUSY_LOAD * (os.cpu_count() or 1)


def may_be_rounding(found: Mismatch, repro: Repro, settings: Settings) -> bool:
    """Return True for a small difference of numbers in a script of low precision, on a backend that fuses."""
    relative = found.signature.relative
    if found.attribute != "value" or relative is None or relative > _LARGEST_ROUNDING:
        return False
    if settings.backend not in (None, "inductor"):
        return False
    if any(name == EMULATE_PRECISION_CASTS for name, _ in settings.knobs):
        return False
    return any(word in repro.source for word in _LOW_PRECISION_WORDS)
