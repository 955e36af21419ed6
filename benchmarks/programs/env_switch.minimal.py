# torch: 2.13.0
import os
import torch
f = torch.compile(lambda x: x + ("Z" in os.environ), backend="eager")
x = torch.zeros(1)
f(x)
os.environ["Z"] = ""
assert f(x)
