# torch: 2.13.0
import torch
x = torch.ones(1, requires_grad=True)
y = torch.ones(1, requires_grad=True)
torch.compile(lambda: (x * 1, y * 1), backend="aot_eager")()[0].backward()
assert y.grad is None
