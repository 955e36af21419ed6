# torch: 2.13.0
"""Poincare-ball tree embedding; prints the distance table of a small taxonomy."""
import itertools
import math
import textwrap
import torch

TREE = """
animal: mammal bird
mammal: cat dog
bird: owl wren
"""


def parse(text):
    for line in textwrap.dedent(text).strip().splitlines():
        parent, _, kids = line.partition(":")
        for kid in kids.split():
            yield parent.strip(), kid


class Taxonomy:
    def __init__(self, edges):
        self.edges = list(edges)
        self.names = sorted({n for e in self.edges for n in e})
        self.parent = {k: p for p, k in self.edges}

    def depth(self, name):
        d = 0
        while name in self.parent:
            name = self.parent[name]
            d += 1
        return d

    def hops(self, a, b):
        def chain(n):
            while n is not None:
                yield n
                n = self.parent.get(n)

        up = {n: i for i, n in enumerate(chain(a))}
        for j, n in enumerate(chain(b)):
            if n in up:
                return up[n] + j
        return math.inf


@torch.compile
def lorentz_distance(u, v):
    """distance of two points of the hyperboloid, first coordinate is time"""
    inner = u[0] * v[0] - u[1] * v[1] - u[2] * v[2]
    return torch.acosh(inner.clamp(min=1.0))


class Embedding:
    def __init__(self, taxonomy, spread):
        self.taxonomy = taxonomy
        self.spread = spread
        n = len(taxonomy.names)
        self.angle = {name: 2 * math.pi * i / n for i, name in enumerate(taxonomy.names)}

    def point(self, name):
        r = self.spread * self.taxonomy.depth(name)
        a = self.angle[name]
        return torch.tensor(
            [math.cosh(r), math.sinh(r) * math.cos(a), math.sinh(r) * math.sin(a)], dtype=torch.float32
        )

    def table(self):
        pairs = list(itertools.combinations(self.taxonomy.names, 2))
        u = torch.stack([self.point(a) for a, _ in pairs], -1)
        v = torch.stack([self.point(b) for _, b in pairs], -1)
        return pairs, lorentz_distance(u, v)


def correlation(xs, ys):
    x, y = torch.tensor(xs), torch.tensor(ys)
    x, y = x - x.mean(), y - y.mean()
    return (x * y).sum().item() / (x.norm() * y.norm()).item()


def main():
    tax = Taxonomy(parse(TREE))
    for spread in (1.0, 16.0):
        pairs, dist = Embedding(tax, spread).table()
        hops = [float(tax.hops(a, b)) for a, b in pairs]
        print(f"spread {spread}: corr {correlation(hops, dist.tolist()):.2f}")
        for (a, b), d in zip(pairs, dist.tolist()):
            if tax.depth(a) == tax.depth(b) == 2:
                print(f"   {a}-{b} {d:.2f}")


main()
