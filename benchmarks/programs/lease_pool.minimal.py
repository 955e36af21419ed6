# torch: 2.13.0
import torch


def f(x):
    log = []

    def gen():
        try:
            yield 1
            yield 2
        finally:
            log.append("closed")

    for _ in gen():
        break
    return x + 1, len(log)


x = torch.zeros(1)
ref = f(x)
got = torch.compile(f, backend="eager")(x)
assert ref[1] == got[1], (ref[1], got[1])
