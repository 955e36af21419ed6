"""Semi supervised training where some batches carry a tag on the tensor."""
import itertools

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


class Blobs(Dataset):
    def __init__(self, n=48, classes=3):
        g = torch.Generator().manual_seed(0)
        self.y = torch.arange(n) % classes
        centers = torch.randn(classes, 5, generator=g) * 2
        self.x = centers[self.y] + 0.3 * torch.randn(n, 5, generator=g)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


class Tagger:
    """Attaches a sample weight to every third batch."""

    def __init__(self, loader, every=3):
        self.loader = loader
        self.every = every

    def __iter__(self):
        for number, (x, y) in enumerate(self.loader):
            if number % self.every == 0:
                x.sample_weight = 1.0 / (1 + number)
            yield x, y


class Net(torch.nn.Module):
    def __init__(self, width=16, classes=3):
        super().__init__()
        self.body = torch.nn.Sequential(
            torch.nn.Linear(5, width),
            torch.nn.ReLU(),
            torch.nn.LayerNorm(width),
        )
        self.head = torch.nn.Linear(width, classes)

    def weight_of(self, x):
        try:
            return x.sample_weight
        except AttributeError:
            return 0.5

    def forward(self, x):
        w = self.weight_of(x)
        logits = self.head(self.body(x))
        return logits, w


def loss_fn(logits, y, w):
    ce = F.cross_entropy(logits, y)
    entropy = -(logits.softmax(-1) * logits.log_softmax(-1)).sum(-1).mean()
    return w * ce + 0.1 * (1 - w) * entropy


def train(net, loader, epochs):
    model = torch.compile(net, backend="aot_eager")
    opt = torch.optim.AdamW(net.parameters(), lr=1e-2)
    for epoch in range(epochs):
        for x, y in itertools.islice(loader, 5):
            logits, w = model(x)
            loss = loss_fn(logits, y, w)
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(f"epoch {epoch} loss {loss.item():.4f}")


@torch.no_grad()
def accuracy(net, data):
    logits, _ = net(data.x)
    return (logits.argmax(-1) == data.y).float().mean().item()


def main():
    torch.manual_seed(7)
    data = Blobs()
    loader = Tagger(DataLoader(data, batch_size=8))
    net = Net()
    train(net, loader, 3)
    acc = accuracy(net, data)
    print(f"accuracy {acc:.3f}")
    return acc


if __name__ == "__main__":
    assert main() > 0.5
