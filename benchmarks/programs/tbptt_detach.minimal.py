import torch
@torch.compile(backend="eager")
def f(x):
    y = x * 1
    y.detach_()
    return y.requires_grad
assert not f(torch.ones(1, requires_grad=True))
