import torch
x = torch.tensor([1.0])
assert torch.compile(lambda x: x // 0.1)(x) == 9
