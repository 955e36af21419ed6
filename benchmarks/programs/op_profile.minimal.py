# torch: 2.13.0
import torch

def g(x):
    g.n = getattr(g, "n", 0) + 1
    return x + g.n

@torch.compile(backend="eager")
def f(x):
    return g(x)

x = torch.zeros(1)
f(x)
assert f(x) == 2
