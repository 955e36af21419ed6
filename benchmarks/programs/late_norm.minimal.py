# torch: 2.13.0
import torch

m = torch.nn.ReLU()
f = torch.compile(lambda x: m(x), backend="eager")
x = -torch.ones(1)
f(x)
m.register_forward_hook(lambda *a: x)
assert f(x) == -1
