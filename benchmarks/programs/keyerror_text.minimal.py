# torch: 2.8.0
import torch
@torch.compile(backend="eager")
def f(x):
    try:
        return x, {}["a"]
    except KeyError as e:
        return x + 1, str(e)
print(f(torch.ones(1)))
