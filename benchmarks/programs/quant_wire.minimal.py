# torch: 2.13.0
import torch
f = torch.compile(lambda x: x.to(torch.int8))
assert f(torch.full((16,), 200.0))[0] == -56
