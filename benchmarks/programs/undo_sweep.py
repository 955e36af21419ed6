# torch: 2.13.0
"""Terraced reservoirs.  Each evening the gates are swept from the lowest
basin to the highest one: whatever a basin cannot hold is pumped back into the
basin above it, which is then examined with the water it has just received.
"""
import torch


class Basin:
    __slots__ = ("name", "capacity", "inflow")

    def __init__(self, name, capacity, inflow):
        self.name = name
        self.capacity = capacity
        self.inflow = inflow


class Cascade(torch.nn.Module):
    def __init__(self, basins):
        super().__init__()
        self.names = [b.name for b in basins]
        self.register_buffer("capacity", torch.tensor([b.capacity for b in basins]))
        self.register_buffer("inflow", torch.tensor([b.inflow for b in basins]))
        self.register_buffer("spilled", torch.zeros(()))

    def sweep(self, levels):
        """levels: list of 0-d tensors, top basin first."""
        index = len(levels) - 1
        caps = self.capacity.unbind(0)
        spill = torch.zeros(())
        for level in reversed(levels):
            excess = (level - caps[index]).clamp(min=0.0)
            levels[index] = level - excess
            if index > 0:
                levels[index - 1] = levels[index - 1] + excess
            else:
                spill = excess
            index -= 1
        return levels, spill

    def forward(self, state, rain):
        levels = list((state + self.inflow * rain).unbind(0))
        levels, spill = self.sweep(levels)
        return torch.stack(levels), spill


def storm(days):
    base = torch.full((days,), 1.0)
    base[days // 3 : days // 2] = 4.0
    return base


def simulate(model, days=9):
    step = torch.compile(model, backend="eager")
    state = torch.tensor([1.0, 2.0, 1.5, 2.5])
    total_in = state.sum().item()
    spilled = 0.0
    rows = []
    for day, rain in enumerate(storm(days)):
        total_in += (model.inflow * rain).sum().item()
        state, spill = step(state, rain)
        spilled += spill.item()
        rows.append((day, state.clone(), spill.item()))
    return state, spilled, total_in, rows


def report(names, rows):
    print("day  " + "  ".join(f"{n:>7}" for n in names) + "    spill")
    for day, state, spill in rows:
        print(f"{day:3d}  " + "  ".join(f"{v:7.2f}" for v in state.tolist()) + f"  {spill:7.2f}")


def main():
    basins = [
        Basin("summit", 6.0, 0.10),
        Basin("ridge", 5.0, 0.20),
        Basin("mill", 4.0, 0.35),
        Basin("harbor", 3.0, 0.80),
    ]
    model = Cascade(basins)
    state, spilled, total_in, rows = simulate(model)
    report(model.names, rows)
    held = state.sum().item()
    balance = total_in - held - spilled
    if abs(balance) > 1e-3:
        raise RuntimeError(f"water balance violated by {balance:.3f}")
    if (state > model.capacity + 1e-5).any():
        raise RuntimeError("a basin is above its capacity")
    print("balanced:", round(held, 3), "held,", round(spilled, 3), "spilled")


if __name__ == "__main__":
    main()
