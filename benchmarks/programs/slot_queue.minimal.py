# torch: 2.13.0
import torch

d = {}
k = d.keys()


@torch.compile(backend="eager")
def f(x):
    d[0] = 0
    return x + len(k)


assert f(torch.zeros(1)).item() == 1
