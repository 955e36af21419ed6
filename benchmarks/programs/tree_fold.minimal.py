import torch
@torch.compile(backend="eager")
def f(x):
    def g():
        pass
    return x + len(g.__name__)
assert f(torch.zeros(1)) == 1
