import operator
import torch

@torch.compile(backend='eager')
def f(x):
    y = set('wxyz')
    operator.isub(y, set('yz'))
    return (x * len(y), y)

assert len(f(torch.ones(1))[1]) == 2  # eager: 2, compiled: 4
