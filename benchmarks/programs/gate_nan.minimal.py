# torch: 2.8.0
import torch
torch.compile(lambda x, n: x + (n > 0), backend="eager", dynamic=True)(torch.ones(1), 1.0)
