# torch: 2.13.0
import torch


class A:
    def __eq__(self, other):
        return True

    def __hash__(self):
        return 0


@torch.compile(backend="eager")
def f(x):
    return x + len({A(), A()})


assert f(torch.zeros(1)).item() == 1
