import torch


@torch.compile(backend="aot_eager_decomp_partition")
def f(x, w):
    return torch.nn.functional.binary_cross_entropy_with_logits(x, x, weight=w)


assert f(torch.ones(1, dtype=torch.bfloat16), torch.ones(1)).dtype == torch.bfloat16
