"""Vector quantised autoencoder with a custom two-output quantiser."""
import torch
from torch import nn
from torch.autograd import Function
from torch.utils.data import DataLoader, TensorDataset


class SplitQuantize(Function):
    """Returns the rounded values and the residue.

    The gradient of the values is passed straight through; when nobody uses
    the residue, it's also sharpened.
    """

    @staticmethod
    def forward(ctx, x, levels):
        ctx.set_materialize_grads(False)
        ctx.levels = levels
        q = torch.round(x * levels) / levels
        return q, x - q

    @staticmethod
    def backward(ctx, grad_q, grad_r):
        if grad_q is None:
            return grad_r, None
        if grad_r is None:
            return grad_q * ctx.levels, None
        return grad_q + grad_r, None


class Quantizer(nn.Module):
    def __init__(self, levels, penalty=0.0):
        super().__init__()
        self.levels = levels
        self.penalty = penalty

    def forward(self, x):
        q, residue = SplitQuantize.apply(torch.tanh(x), self.levels)
        if self.penalty:
            return q, self.penalty * residue.square().mean()
        return q, None


class AutoEncoder(nn.Module):
    def __init__(self, features=8, code=3, levels=4, penalty=0.0):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(features, 16), nn.ELU(), nn.Linear(16, code))
        self.quant = Quantizer(levels, penalty)
        self.dec = nn.Linear(code, features)

    def forward(self, x):
        q, extra = self.quant(self.enc(x))
        loss = (self.dec(q) - x).square().mean()
        return loss if extra is None else loss + extra


def patterns(n=32, features=8):
    i = torch.arange(n, dtype=torch.float32)[:, None]
    k = torch.arange(1, features + 1, dtype=torch.float32)
    return torch.sin(0.4 * i * k.sqrt())


def grad_norms(module):
    return {n: p.grad.norm().item() for n, p in module.named_parameters()}


def fit(model, step, loader, epochs=2):
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.5)
    norms = []
    for _ in range(epochs):
        for (x,) in loader:
            opt.zero_grad()
            step(x).backward()
            norms.append(grad_norms(model.enc)["0.weight"])
            opt.step()
    return norms


def experiment(compiled):
    torch.manual_seed(9)
    model = AutoEncoder()
    step = torch.compile(model, backend="aot_eager") if compiled else model
    loader = DataLoader(TensorDataset(patterns()), batch_size=16)
    return fit(model, step, loader)


if __name__ == "__main__":
    eager = experiment(False)
    fast = experiment(True)
    print("eager   ", [f"{v:.4f}" for v in eager])
    print("compiled", [f"{v:.4f}" for v in fast])
    torch.testing.assert_close(torch.tensor(fast), torch.tensor(eager), rtol=1e-2, atol=1e-4)
