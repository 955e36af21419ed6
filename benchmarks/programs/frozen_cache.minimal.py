# torch: 2.8.0 2.13.0
import torch
@torch.compile(backend="aot_eager")
def f(x):
    with torch.inference_mode():
        return x + 1
assert f(torch.ones(1)).is_inference()
