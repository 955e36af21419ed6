# torch: 2.13.0
import torch
import torch.nn.functional as F

@torch.compile(backend="aot_eager_decomp_partition")
def f(x):
    return F.nll_loss(x, torch.tensor([0]), weight=torch.zeros(2))

x = torch.zeros(1, 2, requires_grad=True)
f(x).backward()
assert x.grad[0, 1] == 0
