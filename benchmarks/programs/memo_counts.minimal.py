import functools
import torch
@torch.compile(backend="eager")
def f(x):
    a = []
    @functools.lru_cache
    def g():
        a.append(1)
    g()
    g()
    return x + len(a)
assert f(torch.zeros(1)) == 1
