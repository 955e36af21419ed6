"""Scaled dot-product attention of eight heads."""

import torch

query, key, value = (torch.randn(2, 8, 128, 32, generator=torch.Generator().manual_seed(n)) for n in range(3))


@torch.compile
def attention(query, key, value):
    return torch.nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)


def benchmark():
    attention(query, key, value)
