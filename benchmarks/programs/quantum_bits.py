# torch: 2.8.0
"""Packing boolean measurement records into integers and decoding parities."""
import itertools

import torch


class Register:
    """An ordered set of named bits inside a measurement record."""

    def __init__(self, **positions):
        self.positions = dict(sorted(positions.items(), key=lambda kv: kv[1]))

    def __iter__(self):
        return iter(self.positions.items())

    def __len__(self):
        return len(self.positions)

    def select(self, record):
        return record[..., list(self.positions.values())]


def stabilisers(n):
    rows = []
    for i in range(n - 1):
        row = torch.zeros(n, dtype=torch.bool)
        row[i] = row[i + 1] = True
        rows.append(row)
    return torch.stack(rows)


def measure(errors, checks):
    counts = (errors[:, None, :] & checks[None]).sum(-1)
    return counts.remainder(2).bool()


def pack(syndrome, register):
    word = torch.zeros(syndrome.shape[:-1], dtype=torch.int64)
    for _, pos in register:
        word = word | (syndrome[..., pos] << pos)
    return word


def build_lookup(checks):
    n = checks.shape[1]
    best = {}
    for weight in range(n + 1):
        for support in itertools.combinations(range(n), weight):
            e = torch.zeros(1, n, dtype=torch.bool)
            e[0, list(support)] = True
            bits = measure(e, checks)[0].tolist()
            key = sum(int(b) << i for i, b in enumerate(bits))
            best.setdefault(key, e[0])
    table = torch.zeros(2 ** checks.shape[0], n, dtype=torch.bool)
    for key, e in best.items():
        table[key] = e
    return table


@torch.compile(backend="eager")
def decode(errors, checks, table, register):
    syndrome = measure(errors, checks)
    word = pack(syndrome, register)
    correction = table[word]
    return errors ^ correction, word


def error_batch(n, batch):
    k = torch.arange(batch * n).reshape(batch, n)
    return ((k * k + 3 * k) % 7) == 3


def logical_failures(residual):
    return residual.all(dim=-1).sum().item()


def main():
    n = 5
    checks = stabilisers(n)
    register = Register(s3=3, s0=0, s2=2, s1=1)
    table = build_lookup(checks)
    errors = error_batch(n, 12)
    residual, word = decode(errors, checks, table, register)
    print("checks", len(register), "table", tuple(table.shape))
    print("words", word.tolist(), word.dtype)
    print("residual weight", residual.sum(-1).tolist())
    print("failures", logical_failures(residual))


if __name__ == "__main__":
    main()
