# torch: 2.8.0
import torch
@torch.compile(backend="eager")
def f(x):
    try:
        raise LookupError("a", 1)
    except LookupError as e:
        return x, str(e)
print(f(torch.ones(1)))
