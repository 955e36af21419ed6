import torch
@torch.compile(backend="aot_eager")
def f(x):
    x.unfold(0, 1, 2).mul_(1)
x = torch.ones(3)
f(x)
assert x.sum() == 3
