# torch: 2.8.0
import torch
@torch.compile(backend="eager")
def f():
    try: {}[0]
    except KeyError as e: return torch.ones(1), e.args
assert f()[1]
