# torch: 2.8.0
import torch, contextlib
@torch.compile(backend="eager")
def f():
    with contextlib.nullcontext(1) as a: torch.ones(a)
f()
