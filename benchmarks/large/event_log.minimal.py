import torch


def make(log):
    class A:
        def g(self):
            log.append(1)

    return lambda x: (A().g(), x + 1)


log = []
torch.compile(make(log), backend="eager")(torch.ones(1))
assert log
