import argparse
import math

import torch


def parse():
    p = argparse.ArgumentParser(description="room heating simulator")
    p.add_argument("--rooms", type=int, default=3)
    p.add_argument("--steps", type=int, default=5)
    p.add_argument("--max-power", type=float, default=2.0)
    p.add_argument("--backend", default="eager")
    return p.parse_args()


class Actuator:
    """Heater of which the power saturates at its limit."""

    limit = 2.0

    def __init__(self, power=0.0):
        self._power = power

    @property
    def power(self):
        return self._power

    @power.setter
    def power(self, value):
        self._power = max(0.0, min(value, self.limit))


class Room(torch.nn.Module):
    def __init__(self, n, leak=0.1):
        super().__init__()
        self.register_buffer("leak", torch.full((n,), leak))
        coupling = torch.eye(n) * 0.0
        for i in range(n - 1):
            coupling[i, i + 1] = coupling[i + 1, i] = 0.05
        self.register_buffer("coupling", coupling)

    def forward(self, temp, outside, heat):
        flow = self.coupling @ temp - self.coupling.sum(1) * temp
        return temp + heat - self.leak * (temp - outside) + flow


class Controller:
    def __init__(self, room, target):
        self.room = room
        self.target = target

    def command(self, step):
        return 3.0 * math.exp(-0.1 * step)

    def step(self, temp, k):
        heater = Actuator()
        heater.power = self.command(k)
        temp = self.room(temp, 5.0, heater.power)
        err = (self.target - temp).abs().mean()
        return temp, err


class Recorder(list):
    def log(self, err):
        self.append(round(float(err), 4))
        return self

    @property
    def best(self):
        return min(self)


def simulate(step_fn, n, steps):
    rec = Recorder()
    temp = torch.linspace(12.0, 16.0, n)
    for k in range(steps):
        temp, err = step_fn(temp, k)
        rec.log(err)
    return temp, rec


args = parse()
Actuator.limit = args.max_power
ctl = Controller(Room(args.rooms), target=20.0)

ref, ref_log = simulate(ctl.step, args.rooms, args.steps)
out, out_log = simulate(torch.compile(ctl.step, backend=args.backend), args.rooms, args.steps)

print("eager    best", ref_log.best, ref.tolist())
print("compiled best", out_log.best, out.tolist())
if not torch.allclose(ref, out, atol=1e-4):
    raise SystemExit("final temperatures differ by %.3f" % (ref - out).abs().max())
