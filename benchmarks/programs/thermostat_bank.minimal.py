# torch: 2.8.0
import torch
class Knob:
    def put(self, v):
        self._level = min(v, 3)
    level = property(lambda self: self._level, put)
def f(x):
    k = Knob()
    k.level = 5
    return x + k.level
out = torch.compile(f, backend="eager")(torch.zeros(1))
assert out.item() == 3.0, out
