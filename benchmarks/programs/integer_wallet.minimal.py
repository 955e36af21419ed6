# torch: 2.8.0
import torch
try: torch.compile(torch.Tensor.mul_, backend="aot_eager")(torch.tensor(1), 1.)
except: exit()
assert 0
