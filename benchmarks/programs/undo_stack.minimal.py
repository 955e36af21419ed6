# torch: 2.8.0
import torch

@torch.compile(backend="eager")
def f(x, a, b):
    a.append(1)
    return x + len(b)

x = torch.zeros(1)
f(x, [], [])
l = []
assert f(x, l, l) == 1
