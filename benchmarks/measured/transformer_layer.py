"""A transformer layer with its backward."""

import torch

torch.manual_seed(0)
layer = torch.nn.TransformerEncoderLayer(64, 4, 128, dropout=0.0, batch_first=True)
compiled = torch.compile(layer)
x = torch.randn(4, 32, 64)


def benchmark():
    compiled(x).sum().backward()
