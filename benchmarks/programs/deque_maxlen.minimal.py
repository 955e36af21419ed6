# torch: 2.8.0
import collections, torch
@torch.compile(backend="eager")
def f(x):
    d = collections.deque(maxlen=2)
    for i in range(4):
        d.append(x + i)
    return sum(d)
print(f(torch.ones(1)))
