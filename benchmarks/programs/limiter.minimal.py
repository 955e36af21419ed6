# torch: 2.13.0
import torch


@torch.compile
def f(x):
    return (x * 2).float()


assert f(torch.tensor([40000.0]).half()).isinf()
