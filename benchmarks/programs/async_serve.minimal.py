import torch
@torch.compile(backend="eager")
def f(x):
    try:
        [1][5]
    except IndexError as e:
        return x + len(str(e))
f(torch.zeros(1))
