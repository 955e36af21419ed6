import torch

def f():
    x = []

    class Model:

        def hit(self):
            x.append('called')

    def g(y):
        Model().hit()
        return y * 1
    return (g, x)

z, w = f()
y = torch.ones(1)
torch.compile(z, backend='eager')(y)
assert len(w) == 1  # eager: 1, compiled: 0
