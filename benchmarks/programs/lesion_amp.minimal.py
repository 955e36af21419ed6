import torch
x = torch.ones(1)
f = torch.compile(torch.nn.functional.binary_cross_entropy_with_logits, backend="aot_eager_decomp_partition")
assert f(x.bfloat16(), x).dtype == torch.bfloat16
