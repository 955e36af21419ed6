# torch: 2.8.0
import torch
@torch.compile(backend="eager")
def f():
    a = 1
    return locals()
assert f()["a"]
