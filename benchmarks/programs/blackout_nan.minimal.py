# torch: 2.13.0
import torch
f = torch.compile(lambda x: torch.dropout(x, 1.0, True), backend="aot_eager_decomp_partition")
assert f(torch.tensor(float("nan"))).isnan()
