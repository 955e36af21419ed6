import torch
import torch.nn.functional as F

@torch.compile(backend='aot_eager_decomp_partition')
def f(x, t):
    return F.binary_cross_entropy_with_logits(x, t)

assert f(torch.eye(1), torch.eye(1, dtype=torch.bfloat16)).dtype == torch.bfloat16  # eager: torch.bfloat16, compiled: torch.float32
