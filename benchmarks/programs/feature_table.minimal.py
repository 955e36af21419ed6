# torch: 2.13.0
import torch

@torch.compile(backend="eager")
def f(x, d):
    return x + 1, list(d)

x = torch.zeros(1)
f(x, {"a": 1, "b": 2})
assert f(x, {"b": 2, "a": 1})[1] == ["b", "a"]
