import torch
@torch.compile(backend="eager")
def f(x):
    y = x * 1
    y.t_()
    return y.shape[0]
assert f(torch.ones(1, 2)) == 2
