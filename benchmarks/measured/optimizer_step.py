"""A step of AdamW over twenty parameters."""

import torch

torch.manual_seed(0)
model = torch.nn.Sequential(*(torch.nn.Linear(64, 64) for _ in range(10)))
optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
model(torch.randn(8, 64)).sum().backward()
step = torch.compile(optimizer.step)


def benchmark():
    step()
