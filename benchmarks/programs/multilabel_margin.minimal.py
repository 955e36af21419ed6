# torch: 2.13.0
import torch
import torch.nn.functional as F

def f(x, t):
    return F.multilabel_margin_loss(x, t)

x = torch.tensor([0.1, 0.2, 0.4, 0.8])
t = torch.tensor([3, 0, -1, 1])
torch.testing.assert_close(torch.compile(f, backend="aot_eager")(x, t), f(x, t))
