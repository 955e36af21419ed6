# torch: 2.8.0
import torch
@torch.compile(backend="aot_eager_decomp_partition")
def f(x):
    return x.clamp(min=float("nan"))
print(f(torch.ones(1)))
