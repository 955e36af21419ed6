# torch: 2.8.0
import torch
class I:
    def __index__(self):
        return 0
i = I()
@torch.compile(backend="eager")
def f(x):
    return x + [1, 2][i]
f(torch.ones(1))
