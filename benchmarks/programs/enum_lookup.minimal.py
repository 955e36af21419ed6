# torch: 2.13.0
import enum
import torch

class Color(enum.Enum):
    RED = 1

def f(x):
    try:
        Color(7)
    except ValueError:
        return x + 1
    return x

x = torch.zeros(1)
assert torch.equal(torch.compile(f, backend="eager")(x), f(x))
