# torch: 2.13.0
import torch


@torch.compile(backend="aot_eager_decomp_partition")
def f(x):
    return torch.nn.functional.soft_margin_loss(x, -torch.ones(1))


x = torch.tensor([500.0], requires_grad=True)
f(x).backward()
assert x.grad.isnan()
