# torch: 2.8.0
import torch
@torch.compile(backend="aot_eager")
def f(x):
    x.add_(1)
    return torch.as_strided_copy(x, (2,), (1,))
assert f(torch.tensor([0, 1, 2, 3])[::2])[1] == 1
