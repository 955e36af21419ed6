import torch
def g():
    log = []
    class C:
        def f(self):
            log.append(1)
    @torch.compile(backend="eager")
    def h(x):
        C().f()
        return x + 1
    h(torch.ones(1))
    return log
assert g()
