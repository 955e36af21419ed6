import torch
@torch.compile(backend="eager")
def f(x):
    items = [1]
    for i in items:
        if len(items) < 2:
            items.append(i)
        x = x + i
    return x
assert f(torch.zeros(1)) == 2
