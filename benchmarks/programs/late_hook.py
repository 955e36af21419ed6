# torch: 2.8.0
# Image classifier on synthetic shapes; after training an activation profiler
# is attached to find dead channels, as in a pruning study.
import contextlib
from collections import OrderedDict, defaultdict

import torch
import torch.nn as nn
import torch.nn.functional as F


def draw(kind, size=12, shift=0):
    img = torch.zeros(size, size)
    c = size // 2 + shift
    if kind == 0:                       # square
        img[c - 3:c + 3, c - 3:c + 3] = 1
    elif kind == 1:                     # cross
        img[c, :] = 1
        img[:, c] = 1
    else:                               # disk
        yy, xx = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
        img = (((yy - c) ** 2 + (xx - c) ** 2) <= 9).float()
    return img


class ShapeSet(torch.utils.data.Dataset):
    def __init__(self, n, seed):
        gen = torch.Generator().manual_seed(seed)
        self.items = []
        for i in range(n):
            shift = int(torch.randint(-2, 3, (1,), generator=gen))
            img = draw(i % 3, shift=shift) + 0.1 * torch.randn(12, 12, generator=gen)
            self.items.append((img.unsqueeze(0), i % 3))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


class ConvBlock(nn.Module):
    def __init__(self, cin, cout):
        super().__init__()
        self.conv = nn.Conv2d(cin, cout, 3, padding=1)
        self.bn = nn.BatchNorm2d(cout)
        self.act = nn.ReLU()

    def forward(self, x):
        return self.act(self.bn(self.conv(x)))


class ShapeNet(nn.Module):
    def __init__(self, width=6, classes=3):
        super().__init__()
        self.features = nn.Sequential(OrderedDict(
            stem=ConvBlock(1, width),
            pool=nn.MaxPool2d(2),
            body=ConvBlock(width, width * 2),
        ))
        self.head = nn.Linear(width * 2, classes)

    def forward(self, x):
        f = self.features(x)
        return self.head(f.mean(dim=(2, 3)))


class ActivationProfiler(contextlib.AbstractContextManager):
    """Collects the mean activation per channel of each ConvBlock."""

    def __init__(self, net):
        self.net = net
        self.stats = defaultdict(list)
        self.handles = []

    def __enter__(self):
        for name, mod in self.net.named_modules():
            if isinstance(mod, ConvBlock):
                self.handles.append(mod.register_forward_hook(self._make(name)))
        return self

    def _make(self, name):
        def hook(module, args, output):
            self.stats[name].append(output.detach().mean(dim=(0, 2, 3)))
        return hook

    def __exit__(self, *exc):
        while self.handles:
            self.handles.pop().remove()
        return False

    def dead(self, tol=0.05):
        out = {}
        for name, rows in self.stats.items():
            mean = torch.stack(rows).mean(0)
            out[name] = (mean < tol * mean.max()).nonzero().flatten().tolist()
        return out


def accuracy(fn, loader):
    good = total = 0
    for x, y in loader:
        good += (fn(x).argmax(1) == y).sum().item()
        total += len(y)
    return good / total


torch.manual_seed(5)
train = torch.utils.data.DataLoader(ShapeSet(36, 1), batch_size=12)
test = torch.utils.data.DataLoader(ShapeSet(24, 2), batch_size=12)
net = ShapeNet()
opt = torch.optim.Adam(net.parameters(), lr=0.02)

for epoch in range(4):
    net.train()
    for x, y in train:
        opt.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        opt.step()
    print(f"epoch {epoch}: loss {loss.item():.3f}")

net.eval()
fast = torch.compile(net, backend="eager")
with torch.no_grad():
    print("test accuracy", round(accuracy(fast, test), 3))
    with ActivationProfiler(net) as prof:
        acc = accuracy(fast, test)
    print("profiled blocks", sorted(prof.stats))
    for block, channels in prof.dead().items():
        print(f"  {block}: dead channels {channels}")
    remaining = {n: m.conv.out_channels - len(prof.dead().get(n, []))
                 for n, m in net.named_modules() if isinstance(m, ConvBlock)}
    print("channels to keep", remaining, "batches seen", sum(map(len, prof.stats.values())))
