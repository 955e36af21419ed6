# torch: 2.13.0
import torch
try:
    torch.compile(lambda x: x.softmax(0), backend="aot_eager_decomp_partition")(torch.tensor([1]))
except RuntimeError:
    pass
else:
    raise AssertionError
