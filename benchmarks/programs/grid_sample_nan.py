# torch: 2.13.0
"""Optical flow warping: pyramid of images with invalid flow marked by NaN."""
import torch
import torch.nn as nn
import torch.nn.functional as F


def base_grid(h, w):
    ys = torch.linspace(-1 + 1 / h, 1 - 1 / h, h)
    xs = torch.linspace(-1 + 1 / w, 1 - 1 / w, w)
    gy, gx = torch.meshgrid(ys, xs, indexing="ij")
    return torch.stack([gx, gy], dim=-1)[None]


class Warp(nn.Module):
    """Samples an image at positions displaced by flow, given in pixels."""

    def forward(self, image, flow):
        n, _, h, w = image.shape
        scale = torch.tensor([2.0 / w, 2.0 / h])
        grid = base_grid(h, w) + flow.permute(0, 2, 3, 1) * scale
        return F.grid_sample(image, grid, mode="bilinear", align_corners=False)


class Pyramid(nn.Module):
    def __init__(self, levels=2):
        super().__init__()
        self.levels = levels
        self.pool = nn.AvgPool2d(2)

    def forward(self, x):
        out = [x]
        for _ in range(self.levels - 1):
            out.append(self.pool(out[-1]))
        return out


class PhotometricError(nn.Module):
    def __init__(self, eps=1e-3):
        super().__init__()
        self.eps = eps

    def forward(self, a, b):
        return (a - b).square().add(self.eps**2).sqrt().mean(1)


class ConsistencyCheck(nn.Module):
    """Number of reliable pixels at every level, and their mean error."""

    def __init__(self, levels=2):
        super().__init__()
        self.pyramid = Pyramid(levels)
        self.warp = Warp()
        self.error = PhotometricError()
        self.last_valid = None
        self.register_buffer("weights", 0.5 ** torch.arange(levels))

    def level(self, first, second, flow):
        err = self.error(first, self.warp(second, flow))
        valid = torch.isfinite(err)
        mean = torch.where(valid, err, torch.zeros_like(err)).sum() / valid.sum()
        return mean, valid.sum()

    def forward(self, first, second, flow):
        total = first.new_zeros(())
        counts = []
        firsts, seconds = self.pyramid(first), self.pyramid(second)
        flows = self.pyramid(flow)
        for i, (a, b, f) in enumerate(zip(firsts, seconds, flows)):
            mean, valid = self.level(a, b, f * 0.5**i)
            total = total + self.weights[i] * mean
            counts.append(valid)
        return total, torch.stack(counts)


class CallCounter:
    def __init__(self, module):
        self.calls = 0
        self.handle = module.register_forward_hook(self)

    def __call__(self, module, args, output):
        self.calls += 1


def make_pair(h=8, w=8, seed=13):
    g = torch.Generator().manual_seed(seed)
    first = torch.rand(1, 3, h, w, generator=g)
    second = first.roll(1, dims=3)
    flow = torch.zeros(1, 2, h, w)
    flow[:, 0] = 1.0
    flow[:, :, 2:4, 5] = float("nan")  # occluded region
    return first, second, flow


def main():
    check = ConsistencyCheck().eval()
    counter = CallCounter(check)
    first, second, flow = make_pair()
    with torch.inference_mode():
        err, valid = check(first, second, flow)
    with torch.no_grad():
        cerr, cvalid = torch.compile(check, backend="inductor")(first, second, flow)
    print("eager   ", round(err.item(), 5), valid.tolist())
    print("compiled", round(cerr.item(), 5), cvalid.tolist())
    print("hook calls", counter.calls)
    assert torch.equal(valid, cvalid), "reliable pixel counts differ"
    torch.testing.assert_close(cerr, err)


if __name__ == "__main__":
    main()
