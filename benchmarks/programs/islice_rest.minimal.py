# torch: 2.8.0
import itertools, torch
@torch.compile(backend="eager")
def f(x):
    it = iter([1, 2, 3, 4])
    head = list(itertools.islice(it, 2))
    return x + sum(head), list(it)
print(f(torch.ones(1)))
