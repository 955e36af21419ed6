import torch
def f(x):
    y = torch.zeros_like(x)
    y[:, 1] += x[:, 0].abs()
    y[:, 1] += x[:, 0].abs()
    return y.sum()
x = torch.ones(1, 2)
assert torch.compile(torch.func.grad(f))(x)[0, 0] == 2
