# torch: 2.13.0
import torch

def shift(buf):
    buf[1:].copy_(buf[:-1].clone())

buf = torch.arange(4.0)
torch.compile(shift)(buf)
assert buf.tolist() == [0.0, 0.0, 1.0, 2.0], buf
