# torch: 2.8.0
import torch
assert not torch.compile(lambda x: x * (x.shape == [1]), backend="eager")(torch.ones(1))
