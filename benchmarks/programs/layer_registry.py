# torch: 2.8.0
"""Audio effects with a log of events kept on the base class."""
import torch
from torch import nn


class Effect(nn.Module):
    events = []
    kind = "none"

    def __init__(self, strength):
        super().__init__()
        self.strength = strength

    def process(self, x):
        raise NotImplementedError

    def forward(self, x):
        return self.process(x)


class Gain(Effect):
    kind = "gain"

    def process(self, x):
        return x * self.strength


class Clip(Effect):
    kind = "clip"

    def process(self, x):
        y = x.clamp(-self.strength, self.strength)
        Clip.events.append(("clip", self.strength))
        return y


class Echo(Effect):
    kind = "echo"

    def __init__(self, strength, delay):
        super().__init__(strength)
        self.delay = delay

    def process(self, x):
        pad = torch.zeros_like(x[: self.delay])
        late = torch.cat([pad, x[: -self.delay]])
        return x + late * self.strength


class Rack(nn.Module):
    def __init__(self, effects):
        super().__init__()
        self.effects = nn.ModuleList(effects)

    def forward(self, x):
        for fx in self.effects:
            x = fx(x)
        return x


FACTORY = {
    "gain": lambda a: Gain(float(a[0])),
    "clip": lambda a: Clip(float(a[0])),
    "echo": lambda a: Echo(float(a[0]), int(a[1])),
}


def parse(text):
    effects = []
    for line in text.strip().splitlines():
        line = line.split("#")[0].strip()
        if not line:
            continue
        name, *args = line.split()
        effects.append(FACTORY[name](args))
    return Rack(effects)


PRESET = """
gain 3.0
clip 0.8      # protect the echo
echo 0.25 5
clip 0.9
"""


def tone(n, seed):
    gen = torch.Generator().manual_seed(seed)
    phase = torch.rand(1, generator=gen)
    return torch.sin(torch.arange(n) * 0.3 + phase)


def render(rack, blocks):
    out = []
    for seed in range(blocks):
        out.append(rack(tone(48, seed)))
    return torch.stack(out)


def main():
    rack = parse(PRESET)
    compiled = torch.compile(rack, backend="eager")
    audio = render(compiled, 2)
    level = audio.abs().max().item()
    print("peak", level)
    assert level <= 0.9 + 1e-6
    log = list(Effect.events)
    print("events", log)
    strengths = [s for _, s in log]
    if strengths != [0.8, 0.9, 0.8, 0.9]:
        raise ValueError(f"event log is incomplete: {strengths}")


if __name__ == "__main__":
    main()
