# torch: 2.8.0
import torch
x = torch.ones(1, 1)
assert torch.compile(torch.addmm, backend="aot_eager_decomp_partition")(x / 0, x, x, beta=0) == 1
