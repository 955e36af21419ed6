# torch: 2.8.0 2.13.0
import torch
f = torch.compile(lambda x: max(x.shape[0], 1.5), backend="eager", dynamic=True)
assert type(f(torch.ones(2))) is int
