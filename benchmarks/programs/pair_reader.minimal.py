# torch: 2.8.0
import torch


@torch.compile(backend="eager")
def f(x):
    it = iter([1, 2, 3, 4])
    return x + 1, list(zip(it, it))


assert f(torch.ones(1))[1] == [(1, 2), (3, 4)]
