# torch: 2.8.0
#!/usr/bin/env python3
"""Packet statistics: sequence numbers are 32 bit and wrap; gaps and wraps are counted."""
import asyncio
import torch

MASK_NAMES = ("wrapped", "late", "gap")


class Flow:
    __slots__ = ("name", "seq", "ts")

    def __init__(self, name, seq, ts):
        self.name, self.seq, self.ts = name, seq, ts


def make_flows():
    top = 2 ** 31 - 1
    i32 = torch.int32
    return [
        Flow("alpha", torch.tensor([5, 6, 7, 9, 10, 11], dtype=i32), torch.linspace(0, 1, 6)),
        Flow("beta", torch.tensor([top - 2, top - 1, top, -top - 1, -top, 3 - top], dtype=i32), torch.linspace(1, 2, 6)),
        Flow("gamma", torch.tensor([top, top, 0, 1, 2, 3], dtype=i32), torch.linspace(2, 4, 6)),
    ]


def classify(seq, ts):
    expected = seq + 1
    wrapped = expected < seq
    nxt = torch.cat([seq[1:], expected[-1:]])
    gap = (nxt != expected) & ~wrapped
    dt = torch.diff(ts, append=ts[-1:])
    late = dt > dt.mean() * 1.5
    return wrapped, late, gap


def score(masks, ts):
    wrapped, late, gap = masks
    weight = 1.0 + wrapped.to(torch.float32) * 0.5 + late * 0.25 + gap * 2.0
    rate = weight.sum() / (ts[-1] - ts[0])
    return {"rate": rate, "counts": torch.stack([m.sum() for m in masks])}


def analyse(seq, ts):
    masks = classify(seq, ts)
    return score(masks, ts)


async def producer(queue, flows):
    for flow in flows:
        await queue.put(flow)
        await asyncio.sleep(0)
    await queue.put(None)


async def consumer(queue, fn, out):
    while True:
        flow = await queue.get()
        if flow is None:
            break
        r = fn(flow.seq, flow.ts)
        out[flow.name] = (r["counts"].tolist(), round(r["rate"].item(), 3))


async def process(fn):
    queue, out = asyncio.Queue(maxsize=2), {}
    await asyncio.gather(producer(queue, make_flows()), consumer(queue, fn, out))
    return out


def describe(counts):
    return ", ".join(f"{n}={c}" for n, c in zip(MASK_NAMES, counts))


def main():
    want = asyncio.run(process(analyse))
    have = asyncio.run(process(torch.compile(analyse)))
    failures = 0
    for name in want:
        ok = want[name] == have[name]
        failures += not ok
        print(f"{name:>6} eager [{describe(want[name][0])}] compiled [{describe(have[name][0])}] {'ok' if ok else 'MISMATCH'}")
    if failures:
        raise AssertionError(f"{failures} flows have other statistics under torch.compile")


if __name__ == "__main__":
    main()
