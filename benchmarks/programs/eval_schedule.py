# torch: 2.13.0
"""Trainer with a schedule given as ranges; the log record says which steps evaluate."""
import json
import torch
import torch.nn as nn


class Schedule:
    def __init__(self, start, stop, every):
        self.window = range(start, stop, every)

    def __contains__(self, step):
        return step in self.window

    def due(self, step):
        return step in self.window


class CallbackList:
    def __init__(self, *callbacks):
        self.callbacks = callbacks

    def fire(self, event, **payload):
        out = {}
        for cb in self.callbacks:
            fn = getattr(cb, "on_" + event, None)
            if fn is not None:
                out.update(fn(**payload))
        return out


class NormCallback:
    def on_step(self, step, hidden, **_):
        return {"norm": hidden.norm()}


class EvalCallback:
    def __init__(self, schedule):
        self.schedule = schedule

    def on_step(self, step, hidden, **_):
        return {"evaluate": self.schedule.due(step), "step": step}


class Cell(nn.Module):
    def __init__(self, dim):
        super().__init__()
        g = torch.Generator().manual_seed(dim)
        self.w = nn.Parameter(torch.randn(dim, dim, generator=g) / dim ** 0.5)

    def forward(self, h):
        return torch.tanh(h @ self.w)


class Unrolled(nn.Module):
    """Runs the cell several steps and collects a record of every step."""

    def __init__(self, dim, steps, callbacks):
        super().__init__()
        self.cell = Cell(dim)
        self.steps = steps
        self.callbacks = callbacks

    def forward(self, h):
        records = []
        for step in range(self.steps):
            h = self.cell(h)
            records.append(self.callbacks.fire("step", step=step, hidden=h))
        return h, records


def plain(rec):
    return {k: (round(v.item(), 4) if isinstance(v, torch.Tensor) else v) for k, v in rec.items()}


def to_jsonl(records):
    return [json.dumps(plain(r), sort_keys=True) for r in records]


def test_log_lines(model, compiled, x):
    with torch.no_grad():
        h1, r1 = model(x)
        h2, r2 = compiled(x)
    torch.testing.assert_close(h1, h2)
    lines1, lines2 = to_jsonl(r1), to_jsonl(r2)
    for a, b in zip(lines1, lines2):
        print(a, "" if a == b else "  compiled: " + b)
    assert lines1 == lines2, "log lines differ"


def main():
    callbacks = CallbackList(NormCallback(), EvalCallback(Schedule(1, 6, 2)))
    model = Unrolled(6, 5, callbacks)
    test_log_lines(model, torch.compile(model, backend="eager"), torch.ones(2, 6))


if __name__ == "__main__":
    main()
