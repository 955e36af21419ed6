# torch: 2.13.0
import torch
@torch.compile(backend="eager")
def f():
    try:
        min([])
    except ValueError:
        pass
f()
