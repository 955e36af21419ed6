import torch

def f(x):
    x.unfold(0, 1, 2).mul_(1)
    return x

# eager: 1, compiled: 0
torch.testing.assert_close(
    torch.compile(f, backend='aot_eager')(torch.tensor([1, 1])),
    f(torch.tensor([1, 1])),
)
