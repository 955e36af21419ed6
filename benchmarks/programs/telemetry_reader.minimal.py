# torch: 2.8.0
import torch
L = []
def g():
    try: yield
    finally: L.append(1)
torch.compile(lambda: (torch.ones(1), next(g())), backend="eager")()
assert L
