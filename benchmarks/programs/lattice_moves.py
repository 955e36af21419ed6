# torch: 2.8.0
"""Monte Carlo on an Ising-like ring; moves are chosen through a direction type."""
import torch


class Direction:
    """A direction on the ring, usable wherever an integer is expected."""
    __slots__ = ("code", "label")

    def __init__(self, code, label):
        self.code = code
        self.label = label

    def __index__(self):
        return self.code

    def __repr__(self):
        return f"<{self.label}>"

    def opposite(self):
        return RIGHT if self is LEFT else LEFT


LEFT = Direction(0, "left")
RIGHT = Direction(1, "right")
SHIFTS = [1, -1]


class Counter:
    def __init__(self):
        self.moves = {"left": 0, "right": 0}

    def hit(self, direction):
        self.moves[direction.label] += 1


class Ring:
    def __init__(self, n, coupling, field):
        k = torch.arange(n)
        self.spins = torch.where(k % 3 == 0, -1.0, 1.0)
        self.coupling = coupling
        self.field = field

    def energy(self, spins):
        bond = -(spins * torch.roll(spins, 1)).sum() * self.coupling
        return bond - self.field * spins.sum()


def local_field(ring, spins, direction):
    neighbour = torch.roll(spins, SHIFTS[direction])
    return ring.coupling * neighbour + ring.field


def relax(ring, spins, direction, beta):
    h = local_field(ring, spins, direction)
    p = torch.sigmoid(2 * beta * h)
    flip = p < 0.5
    return torch.where(flip, -spins, spins)


@torch.compile(backend="eager")
def sweep(ring, spins, direction, counter, beta):
    counter.hit(direction)
    spins = relax(ring, spins, direction, beta)
    return spins, ring.energy(spins)


def anneal(ring, betas):
    counter = Counter()
    spins = ring.spins
    direction = LEFT
    history = []
    for beta in betas:
        spins, e = sweep(ring, spins, direction, counter, beta)
        history.append((beta, direction, e.item()))
        direction = direction.opposite()
    return spins, history, counter


def magnetisation(spins):
    return spins.mean().item()


def main():
    ring = Ring(12, coupling=0.8, field=0.3)
    spins, history, counter = anneal(ring, [0.2, 0.4, 0.8, 1.6])
    for beta, direction, e in history:
        print(f"beta={beta:.1f} {direction!r:8} energy={e:.3f}")
    print("m =", magnetisation(spins))
    print("moves", counter.moves)


if __name__ == "__main__":
    main()
