# torch: 2.13.0
"""Streaming histogram with exponential forgetting, kept in module buffers."""
import torch
import torch.nn as nn


class BinMixin:
    def edges(self):
        return torch.linspace(self.lo, self.hi, self.bins + 1)

    def locate(self, x):
        scaled = (x - self.lo) / (self.hi - self.lo) * self.bins
        return scaled.floor().clamp(0, self.bins - 1).to(torch.int64)


class ForgetMixin:
    half_life = 4

    @property
    def factor(self):
        return 0.5 ** (1.0 / self.half_life)

    def forget(self):
        self.counts.mul_(self.factor)
        self.steps.add_(1)


class StreamingHistogram(BinMixin, ForgetMixin, nn.Module):
    def __init__(self, lo, hi, bins, dtype=torch.float32):
        super().__init__()
        self.lo, self.hi, self.bins = lo, hi, bins
        self.register_buffer("counts", torch.zeros(bins, dtype=dtype))
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))

    def forward(self, x):
        self.forget()
        idx = self.locate(x)
        self.counts.index_add_(0, idx, torch.ones_like(x, dtype=self.counts.dtype))
        p = self.counts / self.counts.sum()
        return -(p * (p + 1e-9).log()).sum()


class Monitor(nn.Module):
    """One histogram per feature, the integer one was set up by an older config."""

    def __init__(self, spec):
        super().__init__()
        self.hists = nn.ModuleDict({n: StreamingHistogram(*args) for n, args in spec.items()})

    def forward(self, batch):
        return {name: hist(batch[name]) for name, hist in self.hists.items()}


SPEC_NEW = {"amplitude": (-3.0, 3.0, 8), "delay": (0.0, 1.0, 5)}
SPEC_OLD = {"amplitude": (-3.0, 3.0, 8), "delay": (0.0, 1.0, 5, torch.int64)}


def batches(n, size=24):
    g = torch.Generator().manual_seed(n)
    for _ in range(n):
        yield {"amplitude": torch.randn(size, generator=g), "delay": torch.rand(size, generator=g)}


def drive(spec, wrap):
    mon = Monitor(spec)
    fn = wrap(mon)
    log = []
    try:
        for b in batches(3):
            out = fn(b)
            log.append({k: round(v.item(), 3) for k, v in out.items()})
    except RuntimeError as err:
        log.append("refused: " + str(err).splitlines()[0][:60])
    return log, {k: v.clone() for k, v in mon.state_dict().items()}


def compare(title, spec):
    print("==", title)
    ref, sref = drive(spec, lambda m: m)
    got, sgot = drive(spec, lambda m: torch.compile(m, backend="aot_eager"))
    for i in range(max(len(ref), len(got))):
        print("   step", i, "eager", ref[i] if i < len(ref) else "-", "| compiled", got[i] if i < len(got) else "-")
    refused = [isinstance(l[-1], str) for l in (ref, got)]
    return refused[0] == refused[1], sref, sgot


def main():
    ok, sref, sgot = compare("float counters", SPEC_NEW)
    assert ok
    for k in sref:
        torch.testing.assert_close(sref[k], sgot[k])
    ok, sref, sgot = compare("integer counters", SPEC_OLD)
    if not ok:
        print("   counts eager", sref["hists.delay.counts"].tolist(), "compiled", sgot["hists.delay.counts"].tolist())
        raise AssertionError("eager refuses integer counters, the compiled module truncates them silently")


if __name__ == "__main__":
    main()
