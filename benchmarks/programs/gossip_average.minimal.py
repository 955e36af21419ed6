# torch: 2.8.0
import torch
try: torch.compile(lambda x: x.expand(2).add_(1), backend="aot_eager")(torch.ones(1))
except: exit()
assert 0
