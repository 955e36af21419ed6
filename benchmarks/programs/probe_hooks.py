# torch: 2.13.0
"""GAN-ish toy with a gradient governor that is only armed for some of the layers."""
import collections
import torch
from torch import nn, optim


class Governor:
    """Attaches gradient scaling to activations; may disarm again if the layer turns out to be small."""

    def __init__(self, factor, min_width):
        self.factor = factor
        self.min_width = min_width

    def arm(self, act):
        return act.register_hook(lambda g: g * self.factor)

    def watch(self, act):
        if not act.requires_grad:
            return act
        handle = self.arm(act)
        if act.shape[-1] < self.min_width:
            handle.remove()
        return act


class Generator(nn.Module):
    def __init__(self, governor, widths=(4, 16, 6)):
        super().__init__()
        self.governor = governor
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(widths, widths[1:]))

    def forward(self, z):
        for layer in self.layers:
            z = torch.tanh(layer(z))
            z = self.governor.watch(z)
        return z


class Critic(nn.Module):
    def __init__(self, width=6):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(width, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1))

    def forward(self, x):
        return self.net(x).squeeze(-1)


class Trainer:
    def __init__(self, lr=0.05):
        self.gen = Generator(Governor(0.5, 10))
        self.critic = Critic()
        self.gen_fn = torch.compile(self.gen, backend="eager")
        self.opt_g = optim.SGD(self.gen.parameters(), lr=lr)
        self.opt_c = optim.SGD(self.critic.parameters(), lr=lr)
        self.log = collections.defaultdict(list)

    def real(self, n):
        return torch.linspace(0, 1, n * 6).view(n, 6)

    def critic_step(self, n):
        with torch.no_grad():
            fake = self.gen(torch.randn(n, 4))
        loss = self.critic(fake).mean() - self.critic(self.real(n)).mean()
        self.opt_c.zero_grad()
        loss.backward()
        self.opt_c.step()
        self.log["critic"].append(loss.item())

    def gen_step(self, n):
        loss = -self.critic(self.gen_fn(torch.randn(n, 4))).mean()
        self.opt_g.zero_grad()
        loss.backward()
        self.opt_g.step()
        self.log["gen"].append(loss.item())

    def fit(self, rounds, n=8):
        for _ in range(rounds):
            self.critic_step(n)
            self.gen_step(n)


def main():
    torch.manual_seed(2)
    t = Trainer()
    t.fit(3)
    for k in sorted(t.log):
        print(k, " ".join(f"{v:.3f}" for v in t.log[k]))
    norm = sum(p.grad.norm().item() for p in t.gen.parameters())
    print(f"last generator grad norm {norm:.3f}")


main()
