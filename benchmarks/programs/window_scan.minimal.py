# torch: 2.8.0
import torch
def gen():
    yield 1
@torch.compile(backend="eager")
def f(x):
    g = gen()
    for v in g:
        pass
    return x + next(g, 5)
f(torch.ones(1))
