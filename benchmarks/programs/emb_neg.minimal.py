# torch: 2.8.0
import torch
@torch.compile
def f(i, w):
    return torch.nn.functional.embedding(i, w)
try:
    print(f(torch.tensor([-1]), torch.ones(3, 2)))
except IndexError as e:
    print(e)
