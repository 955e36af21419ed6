"""Decentralised averaging: every peer starts from the same broadcast model."""
import abc
import random
from contextlib import suppress

import torch


class Topology(abc.ABC):
    def __init__(self, peers):
        self.peers = peers

    @abc.abstractmethod
    def mixing(self):
        """Row-stochastic mixing matrix."""


class Ring(Topology):
    def mixing(self):
        n = self.peers
        m = torch.zeros(n, n)
        for i in range(n):
            m[i, i] = 0.5
            m[i, (i + 1) % n] = 0.25
            m[i, (i - 1) % n] += 0.25
        return m


class Full(Topology):
    def mixing(self):
        return torch.full((self.peers, self.peers), 1.0 / self.peers)


class SharedStateError(RuntimeError):
    pass


class Swarm:
    """The peers' parameters as rows of a matrix."""

    def __init__(self, topology, dim, lr=0.5):
        self.w = topology.mixing()
        self.peers = topology.peers
        self.lr = lr
        self.init = torch.linspace(-1, 1, dim)

    def local_update(self, params, grads):
        rows = params.expand(self.peers, -1)
        rows.sub_(grads * self.lr)
        return self.w @ rows

    def safe_update(self, params, grads):
        rows = params.repeat(self.peers, 1)
        rows.sub_(grads * self.lr)
        return self.w @ rows


def fake_grads(swarm, seed):
    rnd = random.Random(seed)
    rows = []
    for p in range(swarm.peers):
        rows.append([rnd.uniform(-1, 1) for _ in range(swarm.init.numel())])
    return torch.tensor(rows)


def guarded(step, swarm):
    """Runs a step; writing to rows that share memory must be refused."""
    params = swarm.init.clone()
    grads = fake_grads(swarm, 1)
    try:
        out = step(params, grads)
    except RuntimeError as err:
        raise SharedStateError(str(err).split(".")[0]) from err
    return out


def is_refused(step, swarm):
    with suppress(SharedStateError):
        guarded(step, swarm)
        return False
    return True


if __name__ == "__main__":
    for topo in (Ring(4), Full(3)):
        swarm = Swarm(topo, dim=5)
        safe = guarded(torch.compile(swarm.safe_update, backend="aot_eager"), swarm)
        torch.testing.assert_close(safe, guarded(swarm.safe_update, swarm))
        name = type(topo).__name__
        eager = is_refused(swarm.local_update, swarm)
        compiled = is_refused(torch.compile(swarm.local_update, backend="aot_eager"), swarm)
        print(f"{name}: eager refused={eager}, compiled refused={compiled}")
        assert eager == compiled, name
