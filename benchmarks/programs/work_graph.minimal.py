# torch: 2.8.0
import torch

@torch.compile(backend="eager")
def f(x):
    d = {1: 1}
    for k in d:
        d[k + 1] = 1
    return x + 1

try:
    f(torch.zeros(1))
except RuntimeError:
    pass
else:
    raise AssertionError
