# torch: 2.13.0
"""Micro inference server.  Requests carry features and the per-row bias that
the client computed; a bias that does not fit the features is the client's
error and must be answered with status 400, not with made-up rows."""
from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Optional

import torch


class Status(enum.IntEnum):
    OK = 200
    BAD_REQUEST = 400
    NOT_FOUND = 404


@dataclass
class Request:
    model: str
    features: torch.Tensor
    bias: torch.Tensor


@dataclass
class Response:
    status: Status
    scores: Optional[torch.Tensor] = None
    detail: str = ""


class Scorer:
    def __init__(self, n_in: int, n_out: int, seed: int):
        gen = torch.Generator().manual_seed(seed)
        self.weight = torch.randn(n_in, n_out, generator=gen)

    def __call__(self, features, bias):
        return torch.addmm(bias, features, self.weight).sigmoid()


class Server:
    def __init__(self):
        self._routes = {}
        self.stats = {status: 0 for status in Status}

    def register(self, name, scorer):
        self._routes[name] = torch.compile(scorer.__call__, backend="aot_eager_decomp_partition")
        return self

    def _answer(self, request: Request) -> Response:
        route = self._routes.get(request.model)
        if route is None:
            return Response(Status.NOT_FOUND, detail=request.model)
        try:
            scores = route(request.features, request.bias)
        except RuntimeError as err:
            return Response(Status.BAD_REQUEST, detail=str(err).splitlines()[0])
        return Response(Status.OK, scores)

    def handle(self, request: Request) -> Response:
        response = self._answer(request)
        self.stats[response.status] += 1
        return response


def client_requests():
    torch.manual_seed(2)
    yield Request("ranker", torch.randn(4, 3), torch.zeros(4, 1))
    yield Request("ranker", torch.randn(2, 3), torch.zeros(5))
    yield Request("missing", torch.randn(2, 3), torch.zeros(2, 1))
    # a retry that re-sent only one row, with the bias of the whole batch
    yield Request("ranker", torch.randn(1, 3), torch.zeros(4, 1))
    yield Request("ranker", torch.randn(3, 3), torch.full((5,), 0.5))


def main():
    server = Server().register("ranker", Scorer(3, 5, seed=1))
    for number, request in enumerate(client_requests()):
        response = server.handle(request)
        rows = None if response.scores is None else tuple(response.scores.shape)
        print(number, response.status.name, rows, response.detail[:60])
        if response.scores is not None and len(response.scores) != len(request.features):
            raise RuntimeError(
                f"request {number}: {len(request.features)} rows in, {len(response.scores)} rows out"
            )
    assert server.stats[Status.BAD_REQUEST] == 1, server.stats


if __name__ == "__main__":
    main()
