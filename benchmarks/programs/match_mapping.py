# torch: 2.8.0
"""Declarative augmentation pipeline: steps are dicts interpreted at run time."""
import functools
import itertools

import torch
import torch.nn.functional as F

PIPELINE = [
    {"op": "scale", "by": 1.25},
    {"op": "shift", "by": -0.1},
    {"op": "blur", "kernel": 3, "pad": "same"},
    {"op": "repeat", "times": 2, "step": {"op": "scale", "by": 0.9}},
    {"op": "clip", "lo": -1.0, "hi": 1.0},
]


class Trace:
    def __init__(self):
        self.lines = []
        self._ids = itertools.count()

    def add(self, text):
        self.lines.append(f"{next(self._ids):02d} {text}")


def audited(fn):
    @functools.wraps(fn)
    def wrapper(img, step, trace, depth=0):
        before = img.shape
        out = fn(img, step, trace, depth)
        if out.shape != before:
            trace.add("shape changed")
        return out

    return wrapper


def box_kernel(size, ref):
    k = torch.ones(1, 1, size, size, dtype=ref.dtype)
    return k / k.sum()


def blur(img, kernel=3, pad="valid"):
    padding = kernel // 2 if pad == "same" else 0
    return F.conv2d(img[:, None], box_kernel(kernel, img), padding=padding)[:, 0]


def clip(img, lo=0.0, hi=1.0):
    return img.clamp(lo, hi)


PARAMETRIC = {"blur": blur, "clip": clip}


@audited
def apply_step(img, step, trace, depth):
    indent = "  " * depth
    match step:
        case {"op": "scale", "by": float(factor)}:
            trace.add(f"{indent}scale {factor}")
            return img * factor
        case {"op": "shift", "by": amount}:
            trace.add(f"{indent}shift {amount}")
            return img + amount
        case {"op": "repeat", "times": n, "step": inner}:
            for _ in range(n):
                img = apply_step(img, inner, trace, depth + 1)
            return img
        case {"op": name, **params}:
            trace.add(f"{indent}{name} with {len(params)} params")
            return PARAMETRIC[name](img, **params)
        case _:
            raise TypeError("bad step")


def run_pipeline(batch, steps, trace):
    for step in steps:
        batch = apply_step(batch, step, trace)
    return batch


def synth_batch(n=2, side=6, seed=5):
    g = torch.Generator().manual_seed(seed)
    base = torch.linspace(-1, 1, side)
    grid = base[:, None] * base[None, :]
    return grid.expand(n, side, side) + 0.1 * torch.randn(n, side, side, generator=g)


def main():
    batch = synth_batch()
    t_ref, t_fast = Trace(), Trace()
    ref = run_pipeline(batch, PIPELINE, t_ref)
    print("\n".join(t_ref.lines))
    fast = torch.compile(run_pipeline, backend="eager")
    out = fast(batch, PIPELINE, t_fast)
    torch.testing.assert_close(out, ref)
    assert t_fast.lines == t_ref.lines, (t_fast.lines, t_ref.lines)
    print("pipelines agree, mean", float(ref.mean()))


if __name__ == "__main__":
    main()
