# torch: 2.8.0
import collections
import torch

def f(x):
    d = collections.defaultdict(list)
    d["a"].append(1)
    return x + 1, repr(d)

x = torch.zeros(1)
assert torch.compile(f, backend="eager")(x)[1] == f(x)[1]
