# torch: 2.8.0
import torch
@torch.compile(backend="eager")
def f(x):
    match {"a": 1}:
        case {"a": 1}:
            return x + 1
f(torch.ones(1))
