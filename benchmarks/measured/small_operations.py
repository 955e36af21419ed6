"""A loop of forty small operations: what a call costs is most of it."""

import torch

x = torch.ones(8)


@torch.compile
def loop(x):
    for number in range(40):
        x = x * 1.01 if number % 2 else x - 0.01
    return x


def benchmark():
    loop(x)
