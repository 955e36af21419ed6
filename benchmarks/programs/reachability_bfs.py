#!/usr/bin/env python
# Message passing along the nodes that can be reached from a seed node.
import string
from collections import OrderedDict

import torch

torch.set_printoptions(precision=4)


class Graph:
    def __init__(self):
        self.adj = OrderedDict()

    def edge(self, a, b):
        self.adj.setdefault(a, []).append(b)
        self.adj.setdefault(b, [])
        return self

    @classmethod
    def chain(cls, n):
        g = cls()
        names = string.ascii_lowercase[:n]
        for a, b in zip(names, names[1:]):
            g.edge(a, b)
        return g

    def __len__(self):
        return len(self.adj)

    def index(self, name):
        return list(self.adj).index(name)


def reachable(adj, seed):
    """Breadth-first closure: the work list grows while it is being walked."""
    todo = [seed]
    for node in todo:
        for nxt in adj[node]:
            if nxt not in todo:
                todo.append(nxt)
    return todo


class Propagate(torch.nn.Module):
    def __init__(self, graph, dim):
        super().__init__()
        self.adj = [[graph.index(b) for b in outs] for outs in graph.adj.values()]
        self.embed = torch.nn.Embedding(len(graph), dim)
        self.decay = 0.5

    def forward(self, seed_vec):
        out = torch.zeros_like(seed_vec)
        scale = 1.0
        for node in reachable(self.adj, 0):
            out = out + scale * self.embed.weight[node] * seed_vec
            scale *= self.decay
        return out


class Probe:
    """Collects the norms of what the module returns."""

    def __init__(self, module):
        self.norms = []
        self.handle = module.register_forward_hook(self)

    def __call__(self, module, inputs, output):
        self.norms.append(output.norm().item())

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.handle.remove()


def build(seed=5):
    torch.manual_seed(seed)
    graph = Graph.chain(5).edge("a", "d").edge("e", "a")
    return Propagate(graph, dim=3)


def main():
    model = build()
    vec = torch.tensor([1.0, -1.0, 2.0])
    with Probe(model) as probe:
        eager = model(vec)
    print("eager norm", probe.norms)

    compiled = torch.compile(model, backend="eager")
    result = compiled(vec)
    print("eager   ", eager.tolist())
    print("compiled", result.tolist())
    torch.testing.assert_close(result, eager)


main()
