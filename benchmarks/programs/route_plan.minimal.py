import torch
@torch.compile(backend="eager")
def f(x):
    match {"a": [1]}:
        case {"a": [b]}:
            return x * b
f(torch.ones(1))
