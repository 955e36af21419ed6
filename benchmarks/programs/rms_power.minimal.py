# torch: 2.13.0
import torch
assert torch.compile(lambda x: x ** -0.5)(torch.tensor(-0.0)) < 0
