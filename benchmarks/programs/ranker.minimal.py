# torch: 2.13.0
import torch
import torch.nn.functional as F

@torch.compile(backend="aot_eager_decomp_partition")
def f(x):
    return F.multi_margin_loss(x, torch.tensor([1]))

x = torch.tensor([[0.0, 1.0]], requires_grad=True)
f(x).backward()
assert x.grad.sum() == 0 and x.grad[0, 0] == 0
