# torch: 2.13.0
import collections
import torch

def f(x):
    d = collections.deque([1, 2], maxlen=2)
    e = d.copy()
    e.append(3)
    return x + len(e)

x = torch.zeros(1)
assert torch.equal(torch.compile(f, backend="eager")(x), f(x))
