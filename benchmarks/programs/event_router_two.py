# torch: 2.8.0
"""A message driven image augmenter: every message is a plain dict."""
import json

import torch
import torch.nn.functional as F

MESSAGES = json.loads("""
[
  {"op": "flip", "axis": 1},
  {"op": "scale", "by": 1.5, "bias": -0.25},
  {"op": "noop"},
  {"op": "pad", "left": 1, "right": 2, "value": 0.5},
  {"op": "blend", "alpha": 0.3}
]
""")


class Ledger:
    def __init__(self):
        self.total = 0
        self.unknown = []

    def __iadd__(self, n):
        self.total += n
        return self


def flip(img, axis):
    return img.flip(axis)


def scale(img, by, bias=0.0):
    return img * by + bias


def pad(img, left=0, right=0, value=0.0):
    return F.pad(img, (left, right), value=value)


def blend(img, alpha):
    smooth = F.avg_pool2d(img[None, None], 3, stride=1, padding=1)[0, 0]
    return alpha * smooth + (1 - alpha) * img


def route(img, message):
    match message:
        case {"op": "flip", "axis": axis}:
            return flip(img, axis)
        case {"op": "scale", **rest}:
            return scale(img, **rest)
        case {"op": "pad", **rest}:
            return pad(img, **rest)
        case {"op": "blend", "alpha": a} if 0 <= a <= 1:
            return blend(img, a)
        case _:
            return img


def normalise(img):
    lo, hi = img.amin(), img.amax()
    return (img - lo) / (hi - lo)


class Augmenter:
    def __init__(self, backend="eager"):
        self.ledger = Ledger()
        self.step = torch.compile(route, backend=backend)
        self.finish = torch.compile(normalise, backend=backend)

    def __call__(self, img, messages):
        for m in messages:
            img = self.step(img, m)
            self.ledger += 1
        return self.finish(img)


def gradient_image(h, w):
    y = torch.arange(h, dtype=torch.float32)[:, None]
    x = torch.arange(w, dtype=torch.float32)[None, :]
    return torch.sin(y * 0.7) + torch.cos(x * 0.3)


def checksum(img):
    h, w = img.shape
    weight = torch.arange(h * w, dtype=img.dtype).reshape(h, w) % 7
    return (img * weight).sum().item()


def main():
    aug = Augmenter()
    img = gradient_image(5, 6)
    out = aug(img, MESSAGES)
    print("shape", tuple(out.shape))
    print(f"checksum {checksum(out):.4f}")
    print("messages", aug.ledger.total)


if __name__ == "__main__":
    main()
