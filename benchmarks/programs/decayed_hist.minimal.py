# torch: 2.13.0
import torch


def f(x):
    x.mul_(0.5)
    return x


def outcome(fn):
    try:
        fn(torch.ones(3, dtype=torch.int64))
    except RuntimeError:
        return "raised"
    return "returned"


ref = outcome(f)
got = outcome(torch.compile(f, backend="aot_eager"))
assert ref == got, (ref, got)
