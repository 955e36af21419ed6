"""Compiled autograd in the forms in which people turn it on.

python examples/compiled_autograd.py flag             the config flag
python examples/compiled_autograd.py context          the context manager, round the backward alone
python examples/compiled_autograd.py hooks            hooks that run in the backward
python examples/compiled_autograd.py graph_break      a graph break in the forward
python examples/compiled_autograd.py changing_graph   another graph at every step, so that it is traced again
python examples/compiled_autograd.py changing_shapes  another shape at every step
"""

import sys

import torch


def network() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))


def flag() -> list:
    """Forward and backward in one compiled function, compiled autograd on for all of the program."""
    torch._dynamo.config.compiled_autograd = True
    model = network()

    @torch.compile(backend="aot_eager")
    def step(x: torch.Tensor) -> torch.Tensor:
        loss = model(x).square().mean()
        loss.backward()
        return loss

    return [step(torch.randn(3, 4)).item() for _ in range(2)] + sums(model)


def context() -> list:
    """The forward compiled by one backend and the backward by another."""
    model = network()
    forward = torch.compile(model, backend="aot_eager")
    for _ in range(2):
        loss = forward(torch.randn(3, 4)).square().mean()
        with enable(torch.compile(backend="eager")):
            loss.backward()
    return [loss.item(), *sums(model)]


def hooks() -> list:
    """A hook on an intermediate tensor, one on a parameter, one after its gradient is accumulated."""
    model = network()
    forward = torch.compile(model, backend="eager")
    seen = []
    model[0].weight.register_hook(lambda grad: grad * 2)
    model[0].weight.register_post_accumulate_grad_hook(lambda weight: seen.append(tuple(weight.grad.shape)))
    for _ in range(2):
        y = forward(torch.randn(3, 4))
        y.register_hook(lambda grad: grad + 1)
        with enable(torch.compile(backend="eager")):
            y.square().mean().backward()
    return [seen, *sums(model)]


def graph_break() -> list:
    """The forward comes in two pieces; the backward is traced as one."""
    model = network()

    @torch.compile(backend="aot_eager")
    def forward(x: torch.Tensor) -> torch.Tensor:
        h = model[1](model[0](x))
        torch._dynamo.graph_break()
        return model[2](h).square().mean()

    for _ in range(2):
        loss = forward(torch.randn(3, 4))
        with enable(torch.compile(backend="aot_eager")):
            loss.backward()
    return [loss.item(), *sums(model)]


def changing_graph() -> list:
    """A deeper backward at every step."""
    model = network()
    for depth in range(1, 4):
        y = model(torch.randn(3, 4))
        for _ in range(depth):
            y = y.sin()
        with enable(torch.compile(backend="eager")):
            y.sum().backward()
    return sums(model)


def changing_shapes() -> list:
    """A longer batch at every step."""
    model = network()
    for batch in (2, 3, 5, 7):
        y = model(torch.randn(batch, 4))
        with enable(torch.compile(backend="eager")):
            y.square().mean().backward()
    return sums(model)


def enable(compiler):
    """The context manager, under the name that this torch has for it."""
    module = torch._dynamo.compiled_autograd
    return (getattr(module, "_enable", None) or module.enable)(compiler)


def sums(model: torch.nn.Module) -> list:
    return [round(parameter.grad.sum().item(), 4) for parameter in model.parameters()]


FORMS = (flag, context, hooks, graph_break, changing_graph, changing_shapes)

if __name__ == "__main__":
    name = sys.argv[1] if len(sys.argv) > 1 else "flag"
    print(name, *next(form for form in FORMS if form.__name__ == name)())
