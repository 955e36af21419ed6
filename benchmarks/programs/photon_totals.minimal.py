# torch: 2.8.0
import torch
assert torch.compile(lambda x: x.numpy() / 1, backend="eager")(torch.tensor(1)).dtype == float
