"""Tensor.detach_() on an intermediate: requires_grad flag afterwards and gradient that flows."""

import sys

import torch


def gate(x, w):
    g = torch.sigmoid(x * w)
    g.detach_()
    rg = g.requires_grad
    return x * g, rg


x = torch.linspace(-1, 1, 6, requires_grad=True)
w = torch.full((6,), 0.5, requires_grad=True)
out_e, rg_e = gate(x, w)
(ge,) = torch.autograd.grad(out_e.sum(), x)
out_c, rg_c = torch.compile(gate, backend="eager")(x, w)
(gc,) = torch.autograd.grad(out_c.sum(), x)
if rg_e != rg_c:
    print(f"MISMATCH requires_grad after detach_: eager={rg_e} compiled={rg_c}")
    sys.exit(1)
if not torch.allclose(ge, gc):
    print("MISMATCH gradient", (ge - gc).abs().max().item())
    sys.exit(1)
print("OK")
