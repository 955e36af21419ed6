# torch: 2.13.0
import torch
class S(torch.Tensor):
    pass
torch.compile(torch.sin, backend="aot_eager")(S())
