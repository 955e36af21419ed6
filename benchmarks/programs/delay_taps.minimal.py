import torch
@torch.compile(backend="aot_eager")
def f(a, b):
    a.add_(1)
    return b[0]
a = torch.tensor([0, 1])
assert f(a, a[1:]) == 2
