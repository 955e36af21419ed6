# torch: 2.8.0
import torch
class A:
    def __index__(self):
        return 0
a = A()
torch.compile(lambda x: x + [1][a], backend="eager")(torch.ones(1))
