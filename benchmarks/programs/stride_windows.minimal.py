# torch: 2.13.0
import torch
f = torch.compile(lambda x, r: x + r[-1], backend="eager")
f(torch.zeros(1), range(2))
f(torch.zeros(1), range(3))
