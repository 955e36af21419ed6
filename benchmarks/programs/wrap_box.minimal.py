# torch: 2.13.0
import torch
f = torch.compile(torch.remainder)
assert f(torch.ones(16), torch.tensor(float("inf")))[0] == 1
