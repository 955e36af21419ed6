"""Differentiable architecture search in miniature: gates are frozen once they are sure of themselves."""

import torch
import torch.nn as nn
from torch.func import functional_call, vmap

torch.set_default_dtype(torch.float32)


def entropy(probabilities):
    return -(probabilities * probabilities.clamp_min(1e-8).log()).sum(-1)


class Gate(nn.Module):
    def __init__(self, options, temperature=1.0, freeze_above=0.0):
        super().__init__()
        self.logits = nn.Parameter(torch.linspace(-0.5, 0.5, options))
        self.temperature = temperature
        self.freeze_above = freeze_above

    def forward(self, x):
        weights = torch.softmax(self.logits / self.temperature, dim=-1)
        if self.freeze_above is not None:
            weights.detach_()
        return weights, weights.requires_grad


class Cell(nn.Module):
    def __init__(self, width, options=3):
        super().__init__()
        self.ops = nn.ModuleList([nn.Linear(width, width) for _ in range(options)])
        self.gate = Gate(options)
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        weights, open_ = self.gate(x)
        mixed = sum(w * op(x) for w, op in zip(weights, self.ops))
        return self.norm(x + torch.tanh(mixed)), open_


class SuperNet(nn.Module):
    def __init__(self, width=8, cells=2, classes=3):
        super().__init__()
        self.cells = nn.ModuleList([Cell(width) for _ in range(cells)])
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        opened = []
        for cell in self.cells:
            x, open_ = cell(x)
            opened.append(open_)
        return self.head(x), opened


def accuracy_of(model, inputs, targets):
    params = dict(model.named_parameters())

    def predict(x):
        return functional_call(model, params, (x.unsqueeze(0),))[0].squeeze(0)

    return (vmap(predict)(inputs).argmax(-1) == targets).float().mean()


class Hooks:
    """counts how often each head is called"""

    def __init__(self, model):
        self.calls = 0
        self.handle = model.head.register_forward_hook(self.count)

    def count(self, module, args, output):
        self.calls += 1

    def close(self):
        self.handle.remove()


def step(model, forward, optimizer, inputs, targets, penalty=0.01):
    optimizer.zero_grad()
    logits, opened = forward(inputs)
    loss = nn.functional.cross_entropy(logits, targets)
    for cell in model.cells:
        loss = loss + penalty * entropy(torch.softmax(cell.gate.logits, -1))
    loss.backward()
    optimizer.step()
    return loss.item(), opened


def search(steps=2, width=8, seed=0):
    torch.manual_seed(seed)
    model = SuperNet(width)
    forward = torch.compile(model, backend="eager")
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    inputs, targets = torch.randn(6, width), torch.randint(0, 3, (6,))
    hooks, states = Hooks(model), []
    try:
        for _ in range(steps):
            loss, opened = step(model, forward, optimizer, inputs, targets)
            states.append(opened)
            print(f"loss {loss:.4f} gates open: {opened}")
    finally:
        hooks.close()
    print("accuracy", accuracy_of(model, inputs, targets).item())
    return states


states = search()
