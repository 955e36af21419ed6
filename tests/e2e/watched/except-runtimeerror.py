"""User's own `except RuntimeError` fallback around a failing view must run under compile as in eager."""

import sys

import torch


def view_or_flat(x):
    try:
        return x.view(7, 3)
    except RuntimeError:
        return x.reshape(-1) + 1


x = torch.arange(8.0)
ref = view_or_flat(x)
got = torch.compile(view_or_flat, backend="eager")(x)
if not torch.equal(ref, got):
    print("MISMATCH", ref, got)
    sys.exit(1)
print("OK")
