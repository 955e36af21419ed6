# torch: 2.8.0
import torch
@torch.compile(backend="eager")
def f():
    try:
        2.0 ** 9999
    except OverflowError:
        pass
f()
