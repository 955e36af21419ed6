"""When what was seen may not be what it seems: a busy machine, a broken environment, a rounding in low precision."""

from __future__ import annotations

import os
import re

from torchbisect.core.mismatch import MismatchKind
from torchbisect.core.repro import Repro, Settings
from torchbisect.probe.judge.classify import Mismatch
from torchbisect.probe.judge.signature import Signature

ENDINGS = frozenset({MismatchKind.CRASH, MismatchKind.HANG, MismatchKind.RAISES, MismatchKind.RAISES_DIFFERENTLY})
"""Mismatches that a broken environment shows too."""

SANE = """\
import torch
def f(x, w):
    return (torch.relu(x @ w) * 2).sum()
x = torch.ones(4, 8, requires_grad=True)
w = torch.full((8, 4), 0.5, requires_grad=True)
torch.compile(f)(x, w).backward()
"""
"""Known to be right on every torch from 2.0 on: forward and backward, on values that leave no room for rounding."""

EMULATE = "_inductor.config.emulate_precision_casts"
"""Makes inductor round where eager does."""

PATIENCE = 4.0
"""How much longer a compiled run may take on a busy machine."""

_REACHED_BY = {"dynamo": "eager", "aot": "aot_eager", "inductor": "inductor"}
_NAMED = re.compile(r"""backend\s*=\s*["'](eager|aot_eager|aot_eager_decomp_partition|inductor)["']""")
# Words of a script that computes in low precision, and how far apart two roundings of one number can be there.
_LOW_PRECISION = ("bfloat16", "float16", "half", "autocast", "float8")
_ROUNDED = 0.05
# Processes that want to run for each core from which on a machine is busy.
_BUSY = 1.5


def machine_is_busy() -> bool:
    """Whether this machine has more to do than it can: then seconds say little."""
    return os.getloadavg()[0] > _BUSY * (os.cpu_count() or 1)


def may_be_rounding(found: Mismatch, repro: Repro, settings: Settings) -> bool:
    """Whether a mismatch is a small difference of numbers in a script of low precision, on a backend that fuses."""
    relative = found.signature.relative
    if found.attribute != "value" or relative is None or relative > _ROUNDED:
        return False
    if settings.backend not in (None, "inductor") or any(name == EMULATE for name, _ in settings.knobs):
        return False
    return any(word in repro.source for word in _LOW_PRECISION)


def backend_of(signature: Signature, source: str, settings: Settings) -> str:
    """The backend whose health decides whether an ending is evidence: the first that reaches where it came from.

    Where that isn't known it is the one that the script names, and inductor if it names none.
    """
    if settings.backend is not None:
        return settings.backend
    if signature.stage:
        return _REACHED_BY[signature.stage]
    named = set(_NAMED.findall(source))
    return named.pop() if len(named) == 1 else "inductor"
