# torch: 2.8.0
import torch
@torch.compile(backend="aot_eager")
def f(x):
    return (x ** 3).sum()
x = torch.ones(2, requires_grad=True)
(g,) = torch.autograd.grad(f(x), x, create_graph=True)
g.sum().backward()
print(x.grad)
