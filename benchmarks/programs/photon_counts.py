# torch: 2.8.0 2.13.0
# Inverse-CDF sampling of photon hits from 8-bit detector images (numpy code, compiled).
import functools
import numpy as np
import torch


def tile_iter(img, size):
    h, w = img.shape
    for i in range(0, h, size):
        for j in range(0, w, size):
            yield (i, j), img[i : i + size, j : j + size]


@torch.compile(backend="aot_eager")
def cumulative(counts):
    flat = counts.reshape(-1)
    return flat.cumsum()


class Detector:
    def __init__(self, shape=(8, 8), seed=1):
        self.shape = shape
        self.rng = np.random.RandomState(seed)

    def expose(self, seconds):
        y, x = np.mgrid[: self.shape[0], : self.shape[1]]
        bump = 40 * np.exp(-((y - 3) ** 2 + (x - 4) ** 2) / 6.0)
        img = np.minimum(bump * seconds + self.rng.randint(0, 5, self.shape), 255)
        return img.astype(np.uint8)


class Sampler:
    def __init__(self, img):
        self.img = img

    @functools.cached_property
    def cdf(self):
        return cumulative(self.img)

    @property
    def total(self):
        return int(self.cdf[-1])

    def quantile(self, q):
        target = q * self.total
        return int(np.searchsorted(self.cdf, target))

    def centre(self):
        pos = self.quantile(0.5)
        return divmod(pos, self.img.shape[1])


class HitModel(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = torch.nn.Linear(2, 1)

    def forward(self, centre):
        return self.lin(centre)


def fit(centres, totals, steps=5):
    model = HitModel()
    opt = torch.optim.SGD(model.parameters(), lr=1e-3)
    x = torch.tensor(centres, dtype=torch.float32)
    y = torch.tensor(totals, dtype=torch.float32)[:, None] / 100
    for _ in range(steps):
        loss = (model(x) - y).abs().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    return loss.item()


def main():
    torch.manual_seed(0)
    det = Detector()
    centres, totals = [], []
    for seconds in (1, 2, 4):
        s = Sampler(det.expose(seconds))
        centres.append(s.centre())
        totals.append(s.total)
        tiles = [int(t.max()) for _, t in tile_iter(s.img, 4)]
        print(f"{seconds}s total={s.total} centre={s.centre()} tile peaks={tiles}")
    print("fit loss %.2f" % fit(centres, totals))


main()
