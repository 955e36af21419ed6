"""The second derivatives of a network by its input, with weights that require a gradient."""

import itertools

import torch

torch.manual_seed(0)
sizes = [30, 256, 256, 256, 1]
layers = []
for before, after in itertools.pairwise(sizes):
    layers += [torch.nn.Linear(before, after), torch.nn.Tanh()]
network = torch.nn.Sequential(*layers[:-1])
x = torch.randn(1, 30, requires_grad=True)


def benchmark():
    (first,) = torch.autograd.grad(network(x).sum(), x, create_graph=True)
    for number in range(first.shape[1]):
        torch.autograd.grad(first[0, number], x, retain_graph=True)
