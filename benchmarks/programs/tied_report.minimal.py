# torch: 2.13.0
import torch
f = torch.compile(lambda x: x in [x], backend="eager")
assert f(torch.ones(1)) is True
