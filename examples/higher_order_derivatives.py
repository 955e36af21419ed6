"""Derivatives of a small network with respect to its inputs only, first and second, compiled.

    python examples/higher_order_derivatives.py grad_of_grad    autograd.grad of autograd.grad
    python examples/higher_order_derivatives.py hessian         the Hessian, by torch.func
    python examples/higher_order_derivatives.py laplacian       its trace, as physics-informed networks want it

The weights' gradients are never asked for.
"""

import sys

import torch


class Field(torch.nn.Module):
    """A scalar field over the plane."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.inner = torch.nn.Linear(2, width)
        self.outer = torch.nn.Linear(width, 1)

    def forward(self, points: torch.Tensor) -> torch.Tensor:
        return self.outer(torch.tanh(self.inner(points))).squeeze(-1)


def grad_of_grad(field: torch.nn.Module, points: torch.Tensor) -> torch.Tensor:
    """The force on each point, and how the forces' size changes with the points."""
    compiled = torch.compile(field, backend="eager")
    points = points.requires_grad_()
    (force,) = torch.autograd.grad(compiled(points).sum(), points, create_graph=True)
    (change,) = torch.autograd.grad(force.square().sum(), points)
    return torch.stack([force.detach(), change])


def hessian(field: torch.nn.Module, points: torch.Tensor) -> torch.Tensor:
    """The matrix of second derivatives at each point."""
    weights = dict(field.named_parameters())

    def at(point: torch.Tensor) -> torch.Tensor:
        return torch.func.functional_call(field, weights, (point,))

    return torch.compile(torch.func.vmap(torch.func.hessian(at)), backend="aot_eager")(points)


def laplacian(field: torch.nn.Module, points: torch.Tensor) -> torch.Tensor:
    """The sum of the unmixed second derivatives at each point."""

    @torch.compile(backend="aot_eager")
    def trace(points: torch.Tensor) -> torch.Tensor:
        def at(point: torch.Tensor) -> torch.Tensor:
            return field(point)

        return torch.func.vmap(torch.func.jacrev(torch.func.jacrev(at)))(points).diagonal(dim1=-2, dim2=-1).sum(-1)

    return trace(points)


def main() -> None:
    torch.manual_seed(0)
    way = {"grad_of_grad": grad_of_grad, "hessian": hessian, "laplacian": laplacian}
    chosen = way[sys.argv[1] if len(sys.argv) > 1 else "grad_of_grad"]
    field = Field().requires_grad_(False)
    for step in range(2):
        found = chosen(field, torch.randn(5, 2))
        print(step, tuple(found.shape), round(found.abs().sum().item(), 4))


if __name__ == "__main__":
    main()
