"""False-positive check: a difference that is only rounding."""

from __future__ import annotations

from torchbisect.core.repro import Repro, Settings
from torchbisect.probe.judge.classify import Mismatch

EMULATE_PRECISION_CASTS = "_inductor.config.emulate_precision_casts"
"""The compiler flag that makes inductor round where eager does."""

_LOW_PRECISION_WORDS = ("bfloat16", "float16", "half", "autocast", "float8")
# The largest relative difference of two roundings of one number in low precision.
_LARGEST_ROUNDING = 0.05


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
