# torch: 2.13.0
import numpy
import torch
assert not torch.compile(lambda: numpy.median([1]).shape, backend="eager")()
