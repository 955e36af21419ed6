# torch: 2.8.0
import torch
@torch.compile(backend="eager")
def f(x):
    try:
        x.y
    except AttributeError:
        pass
f(torch.ones(1))
