# torch: 2.8.0
"""Sliding window anomaly scan with a pull-based window source."""
from typing import Iterator, NamedTuple, Optional

import torch


class Window(NamedTuple):
    start: int
    values: torch.Tensor


class Verdict(NamedTuple):
    start: int
    score: float


SPECS = {
    "hourly": dict(size=8, stride=4),
    "daily": dict(size=16, stride=8),
    "oversized": dict(size=64, stride=1),
}


def windows(series: torch.Tensor, size: int, stride: int) -> Iterator[Window]:
    start = 0
    while start + size <= series.shape[0]:
        yield Window(start, series[start:start + size])
        start += stride


def robust_score(w: torch.Tensor) -> torch.Tensor:
    centre = w.median()
    mad = (w - centre).abs().median()
    return ((w - centre) / (mad + 1e-3)).abs().amax()


def trend_score(w: torch.Tensor) -> torch.Tensor:
    n = w.shape[0]
    t = torch.arange(n, dtype=w.dtype) - (n - 1) / 2
    slope = (t * (w - w.mean())).sum() / (t * t).sum()
    return slope.abs()


@torch.compile(backend="eager", dynamic=False)
def scan(series: torch.Tensor, size: int, stride: int, budget: int):
    source = windows(series, size, stride)
    starts = []
    scores = []
    for w in source:
        starts.append(w.start)
        scores.append(robust_score(w.values) + trend_score(w.values))
        if len(starts) == budget:
            break
    pending: Optional[Window] = next(source, None)
    resume = None if pending is None else pending.start
    if not starts:
        return starts, series.new_zeros(()), resume
    return starts, torch.stack(scores), resume


def verdicts(starts, scores, limit):
    if not starts:
        return []
    picked = [Verdict(s, round(v, 3)) for s, v in zip(starts, scores.tolist()) if v > limit]
    picked.sort(key=lambda v: (-v.score, v.start))
    return picked


def synthetic(n: int) -> torch.Tensor:
    t = torch.arange(n, dtype=torch.float32)
    s = torch.sin(t * 0.4) + 0.01 * t
    s[n // 3] += 6.0
    s[2 * n // 3] -= 4.0
    return s


def main() -> None:
    series = synthetic(48)
    for name, spec in SPECS.items():
        starts, scores, resume = scan(series, budget=8, **spec)
        found = verdicts(starts, scores, limit=4.0)
        text = "; ".join(f"@{v.start}:{v.score}" for v in found) or "nothing"
        print(f"{name:<10} windows={len(starts):<3} resume={resume} {text}")


if __name__ == "__main__":
    main()
