# torch: 2.13.0
import collections
import torch
c = collections.ChainMap()
f = torch.compile(lambda x: x + len(c), backend="eager")
x = torch.zeros(1)
f(x)
c[0] = 0
assert f(x)
