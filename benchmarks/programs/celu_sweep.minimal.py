import torch
f = torch.compile(lambda x: torch.celu(x, 0.0), backend="aot_eager_decomp_partition")
try:
    f(torch.ones(1))
except RuntimeError:
    pass
else:
    raise AssertionError
