"""A layer norm with its backward."""

import torch

x = torch.linspace(-4, 4, 1 << 19).view(1024, 512).requires_grad_()
norm = torch.nn.LayerNorm(512)
compiled = torch.compile(norm)


def benchmark():
    compiled(x).sum().backward()
    x.grad = None
