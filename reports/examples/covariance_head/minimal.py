import torch

@torch.compile(backend='eager')
def f(x):
    y = torch.ones(1)
    y[:] = x
    return y.requires_grad

assert f(torch.ones(1, requires_grad=True))  # eager: True, compiled: False
