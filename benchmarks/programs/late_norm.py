# torch: 2.13.0
import torch
from torch import nn


class Encoder(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.gate = nn.ReLU()
        self.width = width

    def forward(self, x):
        return self.gate(x)


class Recorder:
    def __init__(self):
        self.rows = []

    def __call__(self, module, inputs, output):
        self.rows.append(tuple(inputs[0].shape))
        return inputs[0].abs()


def batches(count, width):
    for _ in range(count):
        yield torch.randn(4, width)


def main():
    model = Encoder(8)
    step = torch.compile(model, backend="eager")
    reference = Encoder(8)
    recorder = Recorder()
    step(torch.randn(4, 8))
    model.gate.register_forward_hook(recorder)
    total = 0.0
    for batch in batches(3, 8):
        out = step(batch)
        total += float((out - reference(batch)).abs().sum())
    print(f"moved by {total:.3f}")
    assert total > 0, "the hook changed nothing"


if __name__ == "__main__":
    main()
