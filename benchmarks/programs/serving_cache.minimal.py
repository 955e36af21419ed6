# torch: 2.8.0
import torch
assert torch.compile(torch.inference_mode()(torch.sin), backend="aot_eager")(torch.ones(1)).is_inference()
