# torch: 2.8.0
import functools, torch
calls = []
@functools.lru_cache(None)
def g(n):
    calls.append(n)
    return n * 2
@torch.compile(backend="aot_eager")
def f(x):
    return x * g(3)
f(torch.ones(2)), f(torch.ones(2, 2))
print(calls)
