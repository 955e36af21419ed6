import torch
torch.compile(lambda x: f"{x.shape[0]:d}", backend="eager", dynamic=True)(torch.ones(2))
