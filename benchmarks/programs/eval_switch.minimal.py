# torch: 2.8.0
import torch
@torch.compile(backend="aot_eager")
def f(x):
    torch.set_grad_enabled(False)
    return x * 2
f(torch.ones(1, requires_grad=True))
assert not torch.is_grad_enabled()
