import operator
import torch
@torch.compile(backend="eager")
def f(x):
    s = {1}
    operator.isub(s, s.copy())
    return x + len(s)
assert f(torch.zeros(1)) == 0
