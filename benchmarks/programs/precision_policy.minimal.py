# torch: 2.8.0
import torch
@torch.compile(backend="aot_eager")
def f():
    torch.set_default_dtype(torch.float64)
    x = torch.ones(1)
    torch.set_default_dtype(torch.float32)
    return x
print(f().dtype)
