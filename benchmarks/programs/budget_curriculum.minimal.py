# torch: 2.8.0
import torch
def h():
    return 1
    yield
def g(): yield (yield from h())
assert torch.compile(lambda: [torch.ones(1), *g()], backend="eager")()[1]
