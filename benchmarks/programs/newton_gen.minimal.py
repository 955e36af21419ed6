import torch
def g(x):
    yield x
    return 1
it = torch.compile(lambda x: g(x + 1), backend="eager")(torch.ones(1))
next(it)
try:
    next(it)
except StopIteration as e:
    assert e.value
