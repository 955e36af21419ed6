import torch
@torch.compile(backend="eager")
def f(x):
    a = [1]
    b = a
    b *= 2
    return x + len(a)
assert f(torch.zeros(1)) == 2
