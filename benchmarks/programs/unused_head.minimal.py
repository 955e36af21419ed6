# torch: 2.8.0
import torch
class M(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = torch.nn.Linear(2, 1), torch.nn.Linear(2, 1)
    def forward(self, x):
        return self.a(x), self.b(x)
m = M()
torch.compile(m, backend="aot_eager")(torch.ones(1, 2))[0].sum().backward()
print(m.b.weight.grad)
