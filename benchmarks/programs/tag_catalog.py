# torch: 2.13.0
"""Builds a catalogue of augmented samples whose tags carry the rendered parameters."""
import abc
import hashlib
import torch

TRANSFORMS = []


def register(cls):
    TRANSFORMS.append(cls)
    return cls


class Transform(abc.ABC):
    precision = ".2f"

    def __init__(self, strength):
        self.strength = strength

    @property
    @abc.abstractmethod
    def label(self):
        ...

    @abc.abstractmethod
    def apply(self, img):
        ...

    def render(self, value):
        return format(value, self.precision)

    def tag(self):
        return self.label + "=" + self.render(self.parameter())

    def parameter(self):
        return self.strength


@register
class Gamma(Transform):
    label = "gamma"

    def parameter(self):
        return 1.0 + self.strength / 3.0

    def apply(self, img):
        return img.clamp(min=0) ** self.parameter()


@register
class Contrast(Transform):
    label = "contrast"
    precision = ".3f"

    def apply(self, img):
        m = img.mean()
        return (img - m) * (1 + self.strength) + m


@register
class Shift(Transform):
    label = "shift"

    def parameter(self):
        return self.strength * 0.125

    def apply(self, img):
        return img + self.parameter()


class Chain:
    def __init__(self, strengths):
        self.parts = [cls(s) for cls, s in zip(TRANSFORMS, strengths)]

    def __call__(self, img):
        tags = []
        for part in self.parts:
            img = part.apply(img)
            tags.append(part.tag())
        return img, "/".join(tags)


class Catalogue:
    def __init__(self):
        self.entries = {}

    def add(self, tag, img):
        self.entries.setdefault(tag, []).append(img)

    def digest(self):
        h = hashlib.sha1()
        for tag in sorted(self.entries):
            h.update(tag.encode())
        return h.hexdigest()[:12]


def images(n):
    g = torch.Generator().manual_seed(1)
    for _ in range(n):
        yield torch.rand(3, 4, generator=g)


def build(chain_call):
    cat = Catalogue()
    for img in images(2):
        out, tag = chain_call(img)
        cat.add(tag, out)
    return cat


def main():
    chain = Chain([0.7, 0.1, 0.33])
    a = build(lambda im: chain(im))
    b = build(torch.compile(lambda im: chain(im), backend="eager"))
    for name, cat in (("eager", a), ("compiled", b)):
        for tag, imgs in cat.entries.items():
            print(f"{name:>8} {tag} -> {len(imgs)} images, mean {imgs[0].mean():.4f}")
    for x, y in zip(sum(a.entries.values(), []), sum(b.entries.values(), [])):
        assert torch.allclose(x, y)
    assert a.digest() == b.digest(), "catalogue keys differ between eager and compiled"


if __name__ == "__main__":
    main()
