# torch: 2.13.0
import torch
f = torch.compile(lambda x: x.expand(2).add_(1), backend="aot_eager")
try:
    f(torch.ones(1))
except RuntimeError:
    pass
else:
    raise AssertionError
