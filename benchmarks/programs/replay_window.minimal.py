# torch: 2.8.0
from collections import deque
import torch
@torch.compile(backend="eager")
def f(x):
    d = deque(maxlen=1)
    d.append(x)
    d.append(x + 1)
    return list(d)
print(f(torch.ones(1)))
