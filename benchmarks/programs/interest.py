# torch: 2.13.0
"""Micro-interest ledger: continuously compounded interest at tiny rates, learned discount curve."""
import decimal
import enum
import torch
from torch import nn


class Compounding(enum.Enum):
    SIMPLE = "simple"
    CONTINUOUS = "continuous"


class Curve(nn.Module):
    def __init__(self, knots):
        super().__init__()
        self.rates = nn.Parameter(torch.tensor(knots))

    def forward(self, i):
        return self.rates[i]


class Engine:
    def __init__(self, mode):
        self.mode = mode
        self._fns = {}

    def kernel(self):
        if self.mode not in self._fns:
            if self.mode is Compounding.SIMPLE:
                fn = lambda rate, dt: rate * dt
            else:
                fn = lambda rate, dt: torch.expm1(rate * dt)
            self._fns[self.mode] = torch.compile(fn)
        return self._fns[self.mode]

    def accrue(self, balances, rates, dt):
        return balances * self.kernel()(rates, dt)


class Ledger:
    def __init__(self, names, balances):
        self.names = names
        self.balances = balances
        self.paid = torch.zeros_like(balances)

    def pay(self, amount):
        self.paid = self.paid + amount

    def rows(self):
        for n, b, p in zip(self.names, self.balances.tolist(), self.paid.tolist()):
            yield n, decimal.Decimal(f"{b:.2f}"), decimal.Decimal(f"{p:.1f}")


def calibrate(curve, target, steps):
    opt = torch.optim.SGD(curve.parameters(), lr=0.1)
    idx = torch.arange(len(target))
    for _ in range(steps):
        loss = ((curve(idx) - target) ** 2).sum()
        opt.zero_grad()
        loss.backward()
        opt.step()
    return curve(idx).detach()


def run(mode, seconds):
    names = [f"acct{i:02d}" for i in range(16)]
    balances = torch.linspace(1e9, 4e9, 16)
    ledger = Ledger(names, balances)
    rates = calibrate(Curve([0.02] * 16), torch.full((16,), 0.03), 10)
    engine = Engine(mode)
    dt = torch.tensor(1.0 / (365 * 24 * 3600))
    for _ in range(seconds):
        ledger.pay(engine.accrue(ledger.balances, rates, dt))
    return ledger


def main():
    for mode in Compounding:
        ledger = run(mode, 5)
        print(mode.value)
        for i, (name, bal, paid) in enumerate(ledger.rows()):
            if i % 5 == 0:
                print(f"  {name} {bal:>15} {paid:>8}")


if __name__ == "__main__":
    main()
