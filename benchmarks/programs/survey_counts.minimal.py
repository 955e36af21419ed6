# torch: 2.8.0
import numpy as np
import torch
@torch.compile(backend="eager")
def f(a):
    return a / 7
print(f(np.arange(3)).dtype)
