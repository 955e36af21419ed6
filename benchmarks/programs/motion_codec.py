# torch: 2.13.0
"""Strip matching on int8 thumbnails (a toy video codec) with a cost cache and a rate model."""
import functools
import math
import time
import torch


def timed(label, sink):
    def deco(fn):
        @functools.wraps(fn)
        def inner(*a, **k):
            t0 = time.perf_counter()
            try:
                return fn(*a, **k)
            finally:
                sink.setdefault(label, []).append(time.perf_counter() - t0)
        return inner
    return deco


def quantise(frame):
    """[-1, 1] floats to the int8 codes -64, 0 and 64 (a coarse three level quantiser)."""
    return ((frame * 1.5).round().clamp(-1, 1) * 64.0).to(torch.int8)


def make_clip(frames=4, size=6):
    yy, xx = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
    clip = []
    for k in range(frames):
        wave = torch.sin((xx + k + 0.5) * (2 * math.pi / 4)) * torch.cos(yy * (2 * math.pi / 6))
        clip.append(quantise(wave))
    return clip


def shift_right(frame, n):
    return torch.roll(frame, n, dims=1)


def residual(cur, ref):
    return cur - ref


def magnitude(res):
    # the codec stores residuals modulo 256, so the magnitude is that of the int8 code
    return res.abs().to(torch.int32)


def strip_costs(cur, ref):
    """Cost of every one-row strip of the thumbnail."""
    return magnitude(residual(cur, ref)).sum(dim=-1)


def make_matcher(candidates, cost):
    candidates = tuple(candidates)

    def match(cur, ref):
        costs = [cost(cur, shift_right(ref, c)) for c in candidates]
        table = torch.stack(costs)
        best = table.argmin(dim=0)
        return best, table.gather(0, best.unsqueeze(0)).squeeze(0), table

    return match


def rate(best, n):
    hist = torch.bincount(best.flatten(), minlength=n).float()
    p = hist / hist.sum()
    return float(-(p[p > 0] * p[p > 0].log2()).sum())


def encode(clip, match, n):
    rows = []
    for ref, cur in zip(clip, clip[1:]):
        best, cost, table = match(cur, ref)
        rows.append({
            "bits": round(rate(best, n), 4),
            "cost": int(cost.sum()),
            "worst": int(table.max()),
            "floor": int(table.min()),
        })
    return rows


def main():
    sink = {}
    candidates = (-1, 0, 1)
    match = make_matcher(candidates, strip_costs)
    clip = make_clip()
    want = timed("eager", sink)(encode)(clip, match, len(candidates))
    have = timed("compiled", sink)(encode)(clip, torch.compile(match), len(candidates))
    for i, (a, b) in enumerate(zip(want, have)):
        print(f"frame {i + 1}: eager {a}")
        if a != b:
            print(f"         compiled {b}")
    print({k: f"{sum(v):.1f}s" for k, v in sink.items()})
    assert want == have, "the compiled encoder takes other decisions"


if __name__ == "__main__":
    main()
