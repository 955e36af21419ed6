import torch


def f(x):
    x.unfold(0, 1, 2).mul_(2)
    return x


torch.testing.assert_close(torch.compile(f, backend="aot_eager")(torch.ones(3)), f(torch.ones(3)))
