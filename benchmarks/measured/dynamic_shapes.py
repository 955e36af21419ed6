"""A reduction over inputs of three lengths, compiled for any."""

import torch

inputs = [torch.linspace(0, 1, 1000 * n) for n in (3, 5, 7)]


@torch.compile(dynamic=True)
def spread(x):
    return ((x - x.mean()) / (x.std() + 1e-5)).relu().sum()


def benchmark():
    for x in inputs:
        spread(x)
