# torch: 2.13.0
import torch
@torch.compile(backend="eager")
def f(x):
    y = x * 2
    y.register_hook(lambda g: g).remove()
    return y
f(torch.ones(1, requires_grad=True))
