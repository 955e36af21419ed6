# torch: 2.13.0
import torch
f = torch.compile(torch.addmm, backend="aot_eager_decomp_partition")
try:
    f(torch.ones(2, 1), torch.ones(1, 1), torch.ones(1, 1))
except RuntimeError:
    pass
else:
    raise AssertionError
