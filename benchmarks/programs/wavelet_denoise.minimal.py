# torch: 2.8.0
import torch
assert torch.compile(torch.nn.functional.softshrink)(torch.tensor(torch.nan)).isnan()
