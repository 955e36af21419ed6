# torch: 2.8.0
import torch
@torch.compile(backend="aot_eager")
def f(x):
    x[0] = 2
    return x.sum()
try:
    f(torch.ones(1, requires_grad=True))
except RuntimeError:
    pass
else:
    raise AssertionError
