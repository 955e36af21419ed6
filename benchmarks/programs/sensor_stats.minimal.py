# torch: 2.8.0
import numpy as np
import torch

f = torch.compile(lambda a: a / 3, backend="aot_eager")
out = f(np.array([1, 2]))
assert out.dtype == np.float64, out.dtype
