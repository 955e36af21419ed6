# torch: 2.8.0
from collections import OrderedDict
import torch
@torch.compile(backend="eager")
def f(x):
    return x + 1, OrderedDict(a=1, b=2) == OrderedDict(b=2, a=1)
print(f(torch.ones(1)))
