# torch: 2.8.0
import torch
def gen():
    try:
        yield
    finally:
        log.append("closed")
@torch.compile(backend="eager")
def f(x):
    for _ in gen():
        break
    return x + 1
log = []
f(torch.ones(1))
print(log)
