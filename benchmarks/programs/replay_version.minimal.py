# torch: 2.13.0
import torch
x = torch.ones(1)
torch.compile(torch.relu_, backend="aot_eager")(x)
assert x._version == 1
