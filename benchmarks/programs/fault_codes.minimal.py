# torch: 2.8.0
import torch
torch.compile(lambda: str(ValueError(1)), backend="eager")()
