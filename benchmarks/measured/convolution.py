"""A convolution, batch norm and activation."""

import torch

torch.manual_seed(0)
block = torch.nn.Sequential(torch.nn.Conv2d(16, 32, 3, padding=1), torch.nn.BatchNorm2d(32), torch.nn.SiLU()).eval()
compiled = torch.compile(block)
x = torch.randn(4, 16, 32, 32)


def benchmark():
    with torch.no_grad():
        compiled(x)
