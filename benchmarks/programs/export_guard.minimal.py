# torch: 2.8.0 2.13.0
import torch
try:
    torch.compile(lambda x: x.numpy(), backend="eager")(torch.ones(1, requires_grad=True))
except RuntimeError:
    pass
else:
    raise AssertionError
