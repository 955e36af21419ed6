# torch: 2.13.0
import torch


@torch.compile(backend="aot_eager")
def f(x, b):
    b.mul_(x)
    return b.sum()


f(torch.ones(1, requires_grad=True), torch.ones(1)).backward()
