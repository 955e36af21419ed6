# torch: 2.8.0
"""Plugin host with lazily resolved options.

Options are resolved by walking override layers; every resolution is audited,
because production wants to know which defaults are really used.
"""
import sys
from contextlib import contextmanager

import torch


class Options:
    def __init__(self, layers):
        self.layers = layers
        self.audit = []

    def __getattr__(self, name):
        self.audit.append(name)
        for layer in self.layers:
            if name in layer:
                return layer[name]
        raise AttributeError(name)


class Plugin:
    name = "identity"

    def __init__(self, options):
        self.options = options

    def run(self, x):
        return x


class Blur(Plugin):
    name = "blur"

    def run(self, x):
        width = self.options.blur_width
        kernel = torch.ones(1, 1, width) / width
        y = torch.nn.functional.conv1d(x[:, None], kernel, padding=width // 2)
        return y[:, 0]


class Gain(Plugin):
    name = "gain"

    def run(self, x):
        factor = getattr(self.options, "gain", 1.0)
        return x * factor


class Clip(Plugin):
    name = "clip"

    def run(self, x):
        limit = getattr(self.options, "clip_limit", 0.8)
        return x.clamp(-limit, limit)


class Host:
    def __init__(self):
        self.plugins = []
        self.calls = 0

    def load(self, cls, options):
        self.plugins.append(cls(options))
        return self

    def process(self, x):
        self.calls += 1
        for p in self.plugins:
            x = p.run(x)
        return x


@contextmanager
def section(title, out=sys.stdout):
    print(f"-- {title}", file=out)
    yield
    print(f"-- end {title}", file=out)


def signal(batch, n):
    t = torch.linspace(0, 6.28, n)
    return torch.stack([torch.sin((b + 1) * t) for b in range(batch)])


def histogram(names):
    counts = {}
    for n in names:
        counts[n] = counts.get(n, 0) + 1
    return sorted(counts.items())


def main():
    options = Options([{"gain": 1.7}, {"blur_width": 3, "gain": 1.1}])
    host = Host().load(Blur, options).load(Gain, options).load(Clip, options)
    process = torch.compile(host.process, backend="eager")
    x = signal(2, 16)
    with section("process"):
        y = process(x)
        print("mean", f"{y.mean().item():.5f}", "max", f"{y.max().item():.5f}")
    with section("audit"):
        for name, n in histogram(options.audit):
            print(f"{name:12s} {n}")
    print("calls", host.calls)


if __name__ == "__main__":
    main()
