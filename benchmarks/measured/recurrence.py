"""A recurrence over twelve steps with its backward."""

import torch

torch.manual_seed(0)
cell = torch.nn.Linear(64, 64)
x = torch.randn(12, 16, 64)


@torch.compile
def recurrence(x):
    state = torch.zeros(16, 64)
    for step in range(12):
        state = torch.tanh(cell(state) + x[step])
    return state


def benchmark():
    recurrence(x).sum().backward()
