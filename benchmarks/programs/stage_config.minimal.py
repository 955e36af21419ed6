# torch: 2.8.0
import torch


@torch.compile(backend="eager")
def f(x):
    a, *b = [1, 2]
    return x + 1, b


assert f(torch.ones(1))[1] == [2]
