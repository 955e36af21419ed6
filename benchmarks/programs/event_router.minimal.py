# torch: 2.8.0
import torch
@torch.compile(backend="eager")
def f(x):
    match x:
        case {0: _}: 0
f({0: torch.ones(1)})
