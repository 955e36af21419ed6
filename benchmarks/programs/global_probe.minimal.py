# torch: 2.13.0
import torch
m = torch.nn.ReLU()
torch.nn.modules.module.register_module_forward_hook(lambda m, i, o: o + 1)
torch.compile(lambda x: m(x), backend="aot_eager")(torch.ones(1))
