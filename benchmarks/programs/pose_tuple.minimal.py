# torch: 2.8.0
import collections
import torch
N = collections.namedtuple("N", "a")
torch.compile(lambda: N(1) * 2, backend="eager")()
