# torch: 2.8.0
import torch
m = torch.nn.Sequential(torch.nn.Linear(2, 2))
seen = []
c = torch.compile(m, backend="eager")
c(torch.ones(1, 2))
m[0].register_forward_hook(lambda *a: seen.append(1))
c(torch.ones(1, 2))
print(seen)
