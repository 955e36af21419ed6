"""The Hessian of a small network by two backwards, in eager mode."""

import torch

torch.manual_seed(0)
weight = torch.randn(16, 16)


def energy(x):
    return torch.tanh(x @ weight).square().sum()


x = torch.randn(16)


def benchmark():
    torch.autograd.functional.hessian(energy, x)
