"""roll + as_strided on a channels_last tensor."""

import sys

import torch


def f(x):
    y = torch.roll(x, shifts=1, dims=0)
    return torch.as_strided(y, (4, 10), (5, 1), 0)


x = torch.arange(100).reshape(2, 5, 2, 5).to(memory_format=torch.channels_last)
ref = f(x)
got = torch.compile(f)(x)
if not torch.equal(ref, got):
    print("MISMATCH elements", int((ref != got).sum()))
    sys.exit(1)
print("OK")
