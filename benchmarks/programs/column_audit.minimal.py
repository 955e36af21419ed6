# torch: 2.8.0
import torch

@torch.compile(backend="eager")
def f(x):
    return x + 1, frozenset(["a", "b"])

out = f(torch.ones(1))[1]
assert out == {"a", "b"}, out
