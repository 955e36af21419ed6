# torch: 2.8.0
"""Mixed experiments: each run picks a scope, which may be a no-op one."""
import contextlib
import itertools

import torch


class ScaleScope:
    """Keeps a stack of active scales."""
    active = []

    def __init__(self, value):
        self.value = value

    def __enter__(self):
        ScaleScope.active.append(self.value)
        return self.value

    def __exit__(self, *exc):
        ScaleScope.active.pop()
        return False


def scope_for(run):
    if run["scaled"]:
        return ScaleScope(run["scale"])
    return contextlib.nullcontext(1.0)


def sinkhorn(cost, scale, iters):
    k = torch.exp(-cost / scale)
    u = torch.ones(cost.shape[0])
    for _ in range(iters):
        v = 1.0 / (k.t() @ u)
        u = 1.0 / (k @ v)
    return u[:, None] * k * v[None, :]


def entropy(plan):
    p = plan / plan.sum()
    return -(p * p.clamp_min(1e-12).log()).sum()


@torch.compile(backend="eager")
def transport(points_a, points_b, run):
    cost = torch.cdist(points_a, points_b)
    with scope_for(run) as scale:
        plan = sinkhorn(cost, scale, run["iters"])
    return plan, (plan * cost).sum()


def grid_points(n, shift):
    t = torch.linspace(0, 1, n)
    return torch.stack([t + shift, (t - shift) ** 2], dim=1)


def sweep():
    for scaled, iters in itertools.product((False, True), (2, 4)):
        yield {"scaled": scaled, "scale": 0.5 if scaled else None, "iters": iters}


def render(row):
    name = "scaled" if row["scaled"] else "plain"
    return "{:>7} it={iters} cost={cost:.4f} H={h:.4f}".format(name, **row)


def main():
    a, b = grid_points(4, 0.0), grid_points(5, 0.3)
    rows = []
    for run in sweep():
        plan, cost = transport(a, b, run)
        rows.append(dict(scaled=run["scaled"], iters=run["iters"], cost=cost.item(), h=entropy(plan).item()))
    for row in rows:
        print(render(row))
    assert not ScaleScope.active
    best = min(rows, key=lambda r: r["cost"])
    print("best:", render(best).strip())


if __name__ == "__main__":
    main()
