# torch: 2.13.0
import torch

@torch.compile(backend="aot_eager")
def f():
    torch.set_default_dtype(torch.float64)
    return torch.ones(2)

out = f()
assert out.dtype == torch.float64, out.dtype
