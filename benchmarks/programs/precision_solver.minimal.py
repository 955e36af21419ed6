# torch: 2.8.0
import torch
f = torch.compile(lambda: (torch.set_default_dtype(torch.double), torch.ones(1)), backend="aot_eager")
assert f()[1].dtype == torch.double
