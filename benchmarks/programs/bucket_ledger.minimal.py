# torch: 2.13.0
import torch


def f(x, i, v):
    return x.index_add(0, i, v)


def outcome(fn):
    try:
        fn(torch.zeros(3), torch.tensor([-1]), torch.ones(1))
    except (IndexError, RuntimeError):
        return "raised"
    return "returned"


ref = outcome(f)
got = outcome(torch.compile(f, backend="inductor"))
assert ref == got, (ref, got)
