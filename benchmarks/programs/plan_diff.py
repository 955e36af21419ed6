# torch: 2.8.0
# Executes a queue of image-processing plans.  A plan is an ordered mapping
# stage -> strength; when two consecutive plans differ, the (stateful)
# normaliser has to be reset, because the order of the stages matters.
import torch
from collections import OrderedDict


def blur(x, s):
    k = torch.tensor([s, 1.0 - 2 * s, s])
    return torch.nn.functional.conv1d(x[:, None], k[None, None], padding=1)[:, 0]


def gain(x, s):
    return x * (1.0 + s)


def clip(x, s):
    return x.clamp(-s, s)


STAGES = {"blur": blur, "gain": gain, "clip": clip}


class RunningNorm:
    def __init__(self, momentum=0.5):
        self.momentum = momentum
        self.scale = torch.ones(())
        self.resets = 0

    def reset(self):
        self.scale = torch.ones(())
        self.resets += 1

    def update(self, x):
        peak = x.abs().max()
        self.scale = self.scale * self.momentum + peak * (1 - self.momentum)
        return x / self.scale


def parse_plan(text):
    """'gain=0.5 > clip=1.0' -> OrderedDict(gain=0.5, clip=1.0)"""
    plan = OrderedDict()
    for part in text.split(">"):
        name, _, value = part.strip().partition("=")
        if name not in STAGES:
            raise KeyError(name)
        plan[name] = float(value)
    return plan


@torch.compile(backend="eager")
def run_plan(x, plan, previous):
    for name, strength in plan.items():
        x = STAGES[name](x, strength)
    changed = 0 if plan == previous else 1
    return x, x.new_zeros(()) + changed


class Executor:
    def __init__(self):
        self.norm = RunningNorm()
        self.previous = OrderedDict()
        self.log = []

    def submit(self, x, text):
        plan = parse_plan(text)
        y, changed = run_plan(x, plan, self.previous)
        if changed.item():
            self.norm.reset()
        self.log.append((text, bool(changed.item())))
        self.previous = plan
        return self.norm.update(y)


QUEUE = [
    "gain=0.5 > clip=1.0",
    "clip=1.0 > gain=0.5",
    "gain=0.5 > clip=1.0",
    "blur=0.25 > gain=0.5 > clip=1.0",
]


def main():
    torch.manual_seed(3)
    ex = Executor()
    x = torch.randn(4, 16)
    for text in QUEUE:
        y = ex.submit(x, text)
        print(f"{text:36s} changed={ex.log[-1][1]!s:5} peak={y.abs().max():.3f}")
    # every plan in the queue is different from its predecessor
    assert ex.norm.resets == len(QUEUE), (ex.norm.resets, ex.log)


main()
