# torch: 2.8.0
import torch
import torch.nn.functional as F

def f(p, y):
    return F.binary_cross_entropy(p, y)

p, y = torch.tensor([1.5]), torch.tensor([0.0])
try:
    f(p, y)
except RuntimeError:
    pass
try:
    torch.compile(f, backend="inductor")(p, y)
except RuntimeError:
    pass
else:
    raise AssertionError("compiled did not raise")
