# torch: 2.8.0
import torch
@torch.compile(backend="eager")
def f():
    try:
        [][::2] = "a"
    except ValueError:
        pass
f()
