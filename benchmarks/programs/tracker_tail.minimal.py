import collections
import torch
@torch.compile(backend="eager")
def f(x):
    d = collections.deque(maxlen=0)
    d.append(1)
    return x + len(d)
assert f(torch.zeros(1)) == 0
