# torch: 2.8.0
"""Recommender: candidate scoring with click-through smoothing."""
import argparse
import math
from collections import namedtuple

import torch

Event = namedtuple("Event", "user item clicks views")
SCORERS = {}


def scorer(name, weight=1.0):
    def register(fn):
        SCORERS[name] = (fn, weight)
        return fn

    return register


def build_events():
    rows = [
        (0, 0, 3, 10), (0, 1, 0, 4), (1, 2, 5, 5),
        (1, 3, 0, 0), (2, 1, 2, 8), (2, 0, 1, 9),
    ]
    return [Event(*r) for r in rows]


def safe_ratio(num, den, default=0.0):
    try:
        value = num / den
    except ZeroDivisionError:
        value = default
    return value


def totals(events, item):
    clicks = views = 0
    for ev in events:
        if ev.item == item:
            clicks += ev.clicks
            views += ev.views
    return clicks, views


@scorer("ctr", weight=2.0)
def ctr_score(base, events, item):
    clicks, views = totals(events, item)
    return base * safe_ratio(clicks, views, default=0.05)


@scorer("popularity")
def popularity_score(base, events, item):
    _, views = totals(events, item)
    return base + math.log1p(views) * 0.1


@scorer("novelty", weight=0.5)
def novelty_score(base, events, item):
    seen = sum(1 for ev in events if ev.item == item)
    return base / (1 + seen)


def blend(base, events, item):
    total = torch.zeros_like(base)
    norm = 0.0
    for name in sorted(SCORERS):
        fn, weight = SCORERS[name]
        total = total + weight * fn(base, events, item)
        norm += weight
    return total / norm


def rank(user_vecs, item_vecs, events):
    affinity = user_vecs @ item_vecs.t()
    columns = []
    for item in range(item_vecs.shape[0]):
        columns.append(blend(affinity[:, item], events, item))
    scores = torch.stack(columns, dim=1)
    return scores, scores.argsort(dim=1, descending=True)


def parse(argv=None):
    p = argparse.ArgumentParser()
    p.add_argument("--users", type=int, default=3)
    p.add_argument("--items", type=int, default=4)
    p.add_argument("--dim", type=int, default=5)
    p.add_argument("--backend", default="eager")
    p.add_argument("--seed", type=int, default=11)
    return p.parse_args(argv)


def main(argv=None):
    args = parse(argv)
    gen = torch.Generator().manual_seed(args.seed)
    users = torch.randn(args.users, args.dim, generator=gen)
    items = torch.randn(args.items, args.dim, generator=gen)
    events = build_events()
    scores, order = rank(users, items, events)
    print("eager order", order.tolist())
    fast = torch.compile(rank, backend=args.backend)
    cscores, corder = fast(users, items, events)
    print("compiled order", corder.tolist())
    torch.testing.assert_close(cscores, scores)
    assert torch.equal(corder, order)


if __name__ == "__main__":
    main()
