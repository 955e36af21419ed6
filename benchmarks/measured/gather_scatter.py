"""A gather and a scatter-add by the same index."""

import torch

index = torch.arange(1 << 18).flip(0) % 4096
table = torch.linspace(0, 1, 4096)


@torch.compile
def spread(table, index):
    return torch.zeros_like(table).scatter_add_(0, index, table[index] * 2)


def benchmark():
    spread(table, index)
