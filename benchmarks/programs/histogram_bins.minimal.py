# torch: 2.8.0
import torch

f = torch.compile(lambda x, w: x // w)
out = f(torch.tensor([1.0]), torch.tensor([0.1]))
assert out.item() == 9.0, out
