# torch: 2.13.0
import io
import json

import torch
import torch.nn as nn


class Tempered(nn.Module):
    """Linear block whose logits are divided by a learned scalar temperature."""

    def __init__(self, dim, temperature):
        super().__init__()
        self.proj = nn.Linear(dim, dim)
        self.temperature = temperature

    def forward(self, x):
        return self.proj(x) / self.temperature


class Stack(nn.Module):
    """Blocks may share ("tie") one temperature.

    Next to the activations, forward returns one summary per block for the
    metrics stream: its depth, its fan-out, and whether its temperature had
    already been used by a block closer to the input.
    """

    def __init__(self, dim, n_groups, group_size):
        super().__init__()
        self.temperatures = nn.ParameterList(
            nn.Parameter(torch.tensor(1.0 + 0.5 * i)) for i in range(n_groups)
        )
        self.blocks = nn.ModuleList(
            Tempered(dim, self.temperatures[g])
            for g in range(n_groups)
            for _ in range(group_size)
        )

    def forward(self, x):
        used = []
        summary = []
        for depth, block in enumerate(self.blocks):
            t = block.temperature
            tied = t in used
            used.append(t)
            x = torch.tanh(block(x))
            summary.append({"depth": depth, "width": x.shape[-1], "tied": tied})
        return x, summary


class JsonLines:
    def __init__(self, sink):
        self.sink = sink
        self.count = 0

    def write(self, record):
        self.sink.write(json.dumps(record, sort_keys=True))
        self.sink.write("\n")
        self.count += 1


def make_data(n, dim):
    x = torch.randn(n, dim)
    y = torch.sin(x.cumsum(1))
    return x, y


def fit(model, x, y, writer, epochs=4):
    forward = torch.compile(model, backend="eager")
    opt = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(epochs):
        out, summary = forward(x)
        loss = (out - y).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        writer.write({"epoch": epoch, "loss": round(loss.item(), 4), "blocks": summary})
    return loss.item()


def main():
    torch.manual_seed(0)
    model = Stack(dim=6, n_groups=1, group_size=3)
    x, y = make_data(32, 6)
    sink = io.StringIO()
    writer = JsonLines(sink)
    final = fit(model, x, y, writer)
    rows = [json.loads(line) for line in sink.getvalue().splitlines()]
    assert len(rows) == writer.count == 4
    assert [b["tied"] for b in rows[-1]["blocks"]] == [False, True, True]
    print("final loss", round(final, 4))


if __name__ == "__main__":
    main()
