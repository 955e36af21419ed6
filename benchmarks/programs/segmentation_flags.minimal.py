# torch: 2.8.0
import torch
assert torch.compile(torch.any)(torch.ones(1).byte()).dtype == torch.uint8
