import torch
f = torch.compile(lambda x: torch.Tensor(x.size()), backend="eager")
assert f(torch.ones(1, 1)).dim() == 2
