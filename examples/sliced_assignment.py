"""An assignment to a slice of a fresh buffer, and whether the buffer then requires a gradient.

    python examples/sliced_assignment.py               the assignment, as in pytorch/pytorch#169179
    python examples/sliced_assignment.py index_put     the way round it

Compiled by torch 2.8.0 the first loses its gradient, as a buffer that no gradient reaches; the second keeps it on every
release.
"""

import sys

import torch


class Symmetric(torch.nn.Module):
    """A learned symmetric matrix, kept as its upper triangle."""

    def __init__(self, size: int, way: str) -> None:
        super().__init__()
        self.size = size
        self.way = way
        self.entries = torch.nn.Parameter(torch.randn(size * (size + 1) // 2))

    def matrix(self) -> tuple:
        rows, columns = torch.triu_indices(self.size, self.size)
        upper = torch.zeros(self.size, self.size)
        if self.way == "index_put":
            upper = torch.index_put(upper, (rows, columns), self.entries)
        else:
            upper[rows, columns] = self.entries
        tracked = upper.requires_grad
        return upper + upper.T - torch.diag(upper.diagonal()), tracked

    def forward(self, x: torch.Tensor) -> tuple:
        matrix, tracked = self.matrix()
        return x @ matrix, tracked


def main() -> None:
    torch.manual_seed(0)
    model = Symmetric(3, sys.argv[1] if len(sys.argv) > 1 else "assignment")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    step = torch.compile(model)
    for _ in range(2):
        y, tracked = step(torch.randn(8, 3))
        optimizer.zero_grad()
        y.square().mean().backward()
        optimizer.step()
        print("loss", round(y.square().mean().item(), 4), "tracked", tracked)


if __name__ == "__main__":
    main()
