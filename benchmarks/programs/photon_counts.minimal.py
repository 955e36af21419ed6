# torch: 2.8.0 2.13.0
import numpy as np
import torch
f = torch.compile(lambda a: a.cumsum(), backend="aot_eager")
assert f(np.array([200, 200], dtype=np.uint8))[1] == 400
