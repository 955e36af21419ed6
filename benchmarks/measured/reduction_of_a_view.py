"""A variance over a transposed view and an argmax."""

import torch

x = torch.linspace(-1, 1, 1 << 18).view(512, 512).sin()


@torch.compile
def reduce(x):
    y = x.t()
    return y.var(0), y.argmax(1), (y * 2).amax(0)


def benchmark():
    reduce(x)
