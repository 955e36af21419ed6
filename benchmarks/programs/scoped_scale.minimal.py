# torch: 2.8.0
import contextlib
import torch
@torch.compile(backend="eager")
def f(x):
    with contextlib.nullcontext(2.0) as s:
        return x * s
f(torch.ones(1))
