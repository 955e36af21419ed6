# torch: 2.8.0
import torch
assert torch.compile(torch.dropout, backend="aot_eager_decomp_partition")(torch.tensor(torch.inf), 1, True).isnan()
