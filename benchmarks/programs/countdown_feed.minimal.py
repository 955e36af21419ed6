# torch: 2.13.0
import torch
class A:
    def __iter__(self):
        return self
    def __next__(self):
        raise StopIteration
a = A()
torch.compile(lambda x: x + len(list(a)), backend="eager")(torch.ones(1))
