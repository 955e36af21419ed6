# torch: 2.13.0
import torch

@torch.compile(backend="eager")
def f(x):
    it = iter([0, 1, 2, 3])
    any(it)
    return x + next(it)

assert f(torch.zeros(1)).item() == 2.0, f(torch.zeros(1))
