# torch: 2.13.0
"""Builds image pyramids and contact sheets from 8-bit images."""
from dataclasses import dataclass

import torch
import torch.nn.functional as F


@dataclass(frozen=True)
class Spec:
    width: int
    height: int
    levels: int = 2
    mode: str = "bilinear"


class Image:
    def __init__(self, data, tag):
        assert data.dtype == torch.uint8 and data.dim() == 3
        self.data = data
        self.tag = tag

    @property
    def size(self):
        return tuple(self.data.shape[-2:])

    def batch(self):
        return self.data[None]


def synthetic(spec, count, seed):
    gen = torch.Generator().manual_seed(seed)
    for i in range(count):
        noise = torch.randint(0, 256, (3, spec.height, spec.width), generator=gen)
        ramp = torch.arange(spec.width) * (i + 1) % 64
        data = (noise // 2 + ramp).clamp(0, 255).to(torch.uint8)
        yield Image(data, f"img{i}")


def halve(x, mode):
    h, w = x.shape[-2:]
    return F.interpolate(x, size=(max(h // 2, 1), max(w // 2, 1)), mode="nearest")


def enlarge(x, size, mode):
    return F.interpolate(x, size=size, mode=mode)


class Pyramid:
    def __init__(self, spec, enlarge_fn):
        self.spec = spec
        self.enlarge = enlarge_fn

    def levels(self, image):
        x = image.batch()
        out = [x]
        for _ in range(self.spec.levels - 1):
            x = halve(x, self.spec.mode)
            out.append(x)
        return out

    def residuals(self, image):
        levels = self.levels(image)
        for fine, coarse in zip(levels, levels[1:]):
            guess = self.enlarge(coarse, tuple(fine.shape[-2:]), self.spec.mode)
            yield fine.int() - guess.int()

    def encode(self, image):
        return self.levels(image)[-1], list(self.residuals(image))


class Decoder:
    def __init__(self, spec):
        self.spec = spec

    def decode(self, code):
        x, residuals = code
        for res in reversed(residuals):
            guess = enlarge(x, tuple(res.shape[-2:]), self.spec.mode)
            x = (guess.int() + res).clamp(0, 255).to(torch.uint8)
        return x[0]


def damage(image, decoded):
    return int((image.data.int() - decoded.int()).abs().sum())


def main():
    spec = Spec(width=16, height=12)
    fast_enlarge = torch.compile(enlarge, backend="aot_eager")
    pyramid = Pyramid(spec, fast_enlarge)
    decoder = Decoder(spec)
    losses = {}
    for image in synthetic(spec, 3, seed=21):
        code = pyramid.encode(image)
        assert code[0].dtype == torch.uint8
        decoded = decoder.decode(code)
        assert tuple(decoded.shape[-2:]) == image.size
        losses[image.tag] = damage(image, decoded)
    print(losses)
    assert not any(losses.values()), "lossless codec lost something"


if __name__ == "__main__":
    main()
