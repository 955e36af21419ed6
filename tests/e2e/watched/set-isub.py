"""operator.isub / iand on python sets inside the compiled function must mutate the set in place."""

import operator
import sys

import torch


def select(x):
    names = set("wxyz")
    operator.isub(names, set("yz"))
    return x * len(names), names


x = torch.ones(3)
ref, rn = select(x)
got, gn = torch.compile(select, fullgraph=True, backend="eager")(x)
if rn != gn or not torch.equal(ref, got):
    print(f"MISMATCH eager={sorted(rn)} compiled={sorted(gn)}")
    sys.exit(1)
print("OK")
