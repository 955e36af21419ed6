# torch: 2.8.0
import torch
@torch.compile(backend="eager")
def f(x):
    try:
        return x.probs
    except AttributeError:
        return x + 1
f(torch.ones(1))
