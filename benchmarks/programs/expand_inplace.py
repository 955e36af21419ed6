# torch: 2.8.0
# Light-field toy renderer: per-camera exposure is applied in place on a stack of views.
import math
import sys
import types

import torch

CONFIG = types.SimpleNamespace(
    height=10, width=14, cameras=4, exposure=(0.5, 1.0, 2.0, 4.0), gamma=2.2, backend="aot_eager",
)


def fallback(*errors, with_):
    """Decorator: call `with_` when the fast routine gives up."""
    def deco(fn):
        def wrapper(*args, **kwargs):
            try:
                return fn(*args, **kwargs)
            except errors as exc:
                wrapper.misses += 1
                wrapper.last = type(exc).__name__
                return with_(*args, **kwargs)
        wrapper.misses, wrapper.last = 0, None
        wrapper.__name__ = fn.__name__
        return wrapper
    return deco


class Vec:
    __slots__ = ("x", "y", "z")

    def __init__(self, x, y, z):
        self.x, self.y, self.z = x, y, z

    def __sub__(self, o):
        return Vec(self.x - o.x, self.y - o.y, self.z - o.z)

    def __matmul__(self, o):
        return self.x * o.x + self.y * o.y + self.z * o.z

    def __abs__(self):
        return math.sqrt(self @ self)

    def unit(self):
        n = abs(self)
        return Vec(self.x / n, self.y / n, self.z / n)


class Sphere:
    def __init__(self, centre, radius, albedo):
        self.c, self.r, self.albedo = centre, radius, albedo

    def shade(self, gx, gy, light):
        dx, dy = gx - self.c.x, gy - self.c.y
        inside = dx * dx + dy * dy < self.r ** 2
        dz = (self.r ** 2 - dx * dx - dy * dy).clamp(min=0).sqrt()
        lambert = (dx * light.x + dy * light.y + dz * light.z) / self.r
        return torch.where(inside, self.albedo * lambert.clamp(min=0.05), torch.zeros_like(gx))


def render(spheres, light):
    ys = torch.linspace(-1, 1, CONFIG.height)
    xs = torch.linspace(-1.4, 1.4, CONFIG.width)
    gy, gx = torch.meshgrid(ys, xs, indexing="ij")
    img = torch.zeros_like(gx)
    for s in spheres:
        img = torch.maximum(img, s.shade(gx, gy, light))
    return img


def expose_slow(image, gains):
    stack = image.expand(len(gains), *image.shape).clone()
    for i in range(len(gains)):
        stack[i] *= gains[i]
    return stack.clamp(0, 1)


@fallback(RuntimeError, with_=expose_slow)
@torch.compile(backend=CONFIG.backend)
def expose(image, gains):
    stack = image.expand(len(gains), *image.shape)
    stack.mul_(gains.view(-1, 1, 1))
    return stack.clamp(0, 1)


def tonemap(img):
    return img.pow(1 / CONFIG.gamma)


def merge(stack, gains):
    """Weighted HDR merge; mid tones get the largest weight."""
    weight = 1 - (2 * stack - 1).abs()
    weight = weight.clamp(min=1e-3)
    radiance = stack / gains.view(-1, 1, 1)
    return (weight * radiance).sum(0) / weight.sum(0)


def ascii_art(img, ramp=" .:-=+*#%@"):
    idx = (img.clamp(0, 0.999) * len(ramp)).long()
    return "\n".join("".join(ramp[i] for i in row) for row in idx.tolist())


def psnr(a, b):
    return -10 * math.log10((a - b).square().mean().item() + 1e-12)


scene = [
    Sphere(Vec(-0.4, 0.0, 0.0), 0.6, 0.9),
    Sphere(Vec(0.6, 0.3, 0.0), 0.4, 0.5),
]
light = (Vec(-1.0, -1.0, 2.0) - Vec(0.0, 0.0, 0.0)).unit()
truth = render(scene, light)
gains = torch.tensor(CONFIG.exposure)

stack = expose(truth.clone(), gains)
hdr = merge(stack, gains)

print(ascii_art(tonemap(hdr / hdr.max())))
for g, view in zip(CONFIG.exposure, stack):
    sat = (view >= 1).float().mean().item()
    print(f"gain {g:<4} mean {view.mean():.4f} saturated {sat:.1%}")
print(f"psnr of merge {psnr(hdr, truth):.2f} dB; {expose.__name__} fell back {expose.misses}x ({expose.last})")
sys.stdout.flush()
