import torch


@torch.compile(backend="eager")
def f(x):
    try:
        return x.view(2)
    except RuntimeError:
        return x


f(torch.ones(1))
