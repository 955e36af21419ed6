# torch: 2.8.0
import torch
@torch.compile(backend="eager")
def f():
    try:
        iter(1)
    except TypeError:
        pass
f()
