# torch: 2.13.0
import enum
import torch
class E(enum.IntEnum):
    A = 0
torch.compile(lambda: [1][E.A], backend="eager")()
