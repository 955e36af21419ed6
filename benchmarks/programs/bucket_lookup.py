# torch: 2.8.0
# Quantile buckets for a ranking model.  Bucket edges come from a config file (ints), the request
# carries floats; the table lookup is exact since all edges are whole numbers.
import bisect
import functools
import io
import itertools
import csv
from collections import OrderedDict, namedtuple
from contextlib import contextmanager
from enum import Enum

import torch
import torch.nn as nn

EDGES = """feature,edge,bonus
age,1,3
age,2,5
price,4,7
price,8,9
"""


class Mode(Enum):
    TRAIN = "train"
    SCORE = "score"


Row = namedtuple("Row", "feature edge bonus")


def read_table(text):
    rows = [Row(r["feature"], int(r["edge"]), int(r["bonus"])) for r in csv.DictReader(io.StringIO(text))]
    table = OrderedDict()
    for feature, group in itertools.groupby(rows, key=lambda r: r.feature):
        table[feature] = {r.edge: r.bonus for r in group}
    return table


class Tower(nn.Module):
    def __init__(self, dims, act=nn.GELU):
        super().__init__()
        blocks = OrderedDict()
        for i, (a, b) in enumerate(itertools.pairwise(dims)):
            blocks[f"fc{i}"] = nn.Linear(a, b)
            blocks[f"act{i}"] = act()
        self.blocks = nn.Sequential(blocks)

    def forward(self, x):
        return self.blocks(x)


class Calibration(nn.Module):
    def __init__(self, table):
        super().__init__()
        self.table = table
        self.bias = nn.ParameterDict({k: nn.Parameter(torch.zeros(1)) for k in table})

    def bucket(self, feature, value):
        edges = sorted(self.table[feature])
        at = bisect.bisect_right(edges, value) - 1
        return edges[max(at, 0)]

    def bonus(self, feature, value):
        exact = self.table[feature].get(value)
        if exact is None:
            return 0
        return exact

    def forward(self, score, request):
        for feature, value in request.items():
            score = score + self.bonus(feature, value) * 0.1 + self.bias[feature]
        return score


class Ranker(nn.Module):
    def __init__(self, table, dim=6):
        super().__init__()
        self.user = Tower([dim, 8, 4])
        self.item = Tower([dim, 8, 4])
        self.calibration = Calibration(table)
        self.mode = Mode.SCORE

    def forward(self, user, items, request):
        u = self.user(user)
        v = self.item(items)
        score = (v @ u) / u.shape[-1] ** 0.5
        if self.mode is Mode.TRAIN:
            score = score + 0.01 * torch.randn_like(score)
        return self.calibration(score, request)


@contextmanager
def scoring(model):
    before, training = model.mode, model.training
    model.mode = Mode.SCORE
    model.eval()
    try:
        yield model
    finally:
        model.mode = before
        model.train(training)


def ndcg(order, relevance):
    gains = [relevance[i] / torch.log2(torch.tensor(2.0 + rank)) for rank, i in enumerate(order)]
    return sum(gains).item()


def cached(fn):
    memo = {}

    @functools.wraps(fn)
    def inner(n):
        if n not in memo:
            memo[n] = fn(n)
        return memo[n]
    return inner


@cached
def candidates(n):
    torch.manual_seed(n)
    return torch.randn(n, 6)


def main():
    torch.manual_seed(4)
    model = Ranker(read_table(EDGES))
    ranker = torch.compile(model, backend="eager")
    report = []
    with scoring(model), torch.no_grad():
        for n, request in ((5, {"age": 2.0, "price": 4.0}), (3, {"price": 8.0})):
            user = torch.linspace(-1, 1, 6)
            score = ranker(user, candidates(n), request)
            order = score.argsort(descending=True).tolist()
            report.append((n, ndcg(order, list(range(n))), score.max().item()))
    for n, gain, top in report:
        print(f"{n} candidates: ndcg {gain:.3f} top {top:.3f}")
    return report


if __name__ == "__main__":
    main()
