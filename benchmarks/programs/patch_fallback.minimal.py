import torch
@torch.compile(backend="eager")
def f(x):
    try:
        x.view(3)
    except RuntimeError:
        pass
f(torch.ones(2))
