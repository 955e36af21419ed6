# torch: 2.13.0
import torch

f = torch.compile(lambda a, b: torch.matmul(a, b))
out = f(torch.ones(1, 1, 2, dtype=torch.int8), torch.ones(1, 2, 2, dtype=torch.int8))
assert out.dtype == torch.int8, out.dtype
