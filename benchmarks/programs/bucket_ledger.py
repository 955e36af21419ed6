# torch: 2.13.0
"""Accumulates per-account amounts from an event stream; events of unknown accounts have
slot -1 and the ledger must refuse them."""
import contextlib
import enum
import torch


class Status(enum.Enum):
    OK = "ok"
    REJECTED = "rejected"


REGISTRY = {}


def handler(kind):
    def deco(fn):
        REGISTRY[kind] = fn
        return fn
    return deco


class Ledger:
    def __init__(self, slots):
        self.slots = slots
        self.balance = torch.zeros(slots)
        self.touched = torch.zeros(slots, dtype=torch.int64)
        self.audit = []

    def snapshot(self):
        return self.balance.clone(), self.touched.clone()


def fee(amount):
    return torch.where(amount > 50, amount * 0.01, torch.full_like(amount, 0.25))


def post(base, slot, delta):
    return base.index_add(0, slot, delta)


@handler("deposit")
def deposit(balance, slot, amount):
    net = amount - fee(amount)
    return post(balance, slot, net)


@handler("withdraw")
def withdraw(balance, slot, amount):
    gross = amount + fee(amount)
    return post(balance, slot, -gross)


@handler("interest")
def interest(balance, slot, amount):
    rate = amount / 100.0
    return balance + torch.zeros_like(balance).scatter_reduce(
        0, slot.clamp(min=0), rate.to(balance.dtype), "mean", include_self=False)


@contextlib.contextmanager
def transaction(ledger, kind, results):
    saved = ledger.snapshot()
    try:
        yield
        results.append((kind, Status.OK))
    except (IndexError, RuntimeError) as err:
        ledger.balance, ledger.touched = saved
        ledger.audit.append((kind, type(err).__name__))
        results.append((kind, Status.REJECTED))


def events():
    T = torch.tensor
    yield "deposit", T([0, 1, 2, 3]), T([10.0, 60.0, 5.0, 120.0])
    yield "interest", T([1, 3, 3]), T([2.0, 4.0, 6.0])
    yield "deposit", T([2, -1, 0, 1]), T([70.0, 40.0, 10.0, 5.0])
    yield "withdraw", T([0, 1, 1, 3]), T([1.0, 2.0, 3.0, 4.0])


class Service:
    def __init__(self, wrap=None):
        wrap = wrap or (lambda f: f)
        self.table = {k: wrap(f) for k, f in REGISTRY.items()}
        self.ledger = Ledger(4)

    def run(self, stream):
        results = []
        for kind, slot, amount in stream:
            with transaction(self.ledger, kind, results):
                self.ledger.balance = self.table[kind](self.ledger.balance, slot, amount)
                self.ledger.touched += torch.bincount(slot.clamp(min=0), minlength=4)
        return results


def main():
    plain = Service()
    fast = Service(torch.compile)
    r1 = plain.run(events())
    r2 = fast.run(events())
    for a, b in zip(r1, r2):
        print(f"{a[0]:>9}: eager {a[1].value:<9} compiled {b[1].value}")
    print("eager   ", plain.ledger.balance.tolist(), plain.ledger.audit)
    print("compiled", fast.ledger.balance.tolist(), fast.ledger.audit)
    assert r1 == r2, "the compiled ledger accepted an unknown account"
    torch.testing.assert_close(plain.ledger.balance, fast.ledger.balance)


if __name__ == "__main__":
    main()
