# torch: 2.8.0
"""Layered hyper-parameter overrides for a small sweep; layers are merged in place."""
import functools
import itertools
import torch


def traced(fn):
    @functools.wraps(fn)
    def inner(*args, **kwargs):
        inner.calls += 1
        return fn(*args, **kwargs)
    inner.calls = 0
    return inner


DEFAULTS = {"scale": 1.0, "shift": 0.0, "act": "relu", "repeat": 1}
ACTS = {"relu": torch.relu, "tanh": torch.tanh, "id": lambda v: v}


def make_layers(names):
    table = {
        "wide": {"scale": 2.0},
        "deep": {"repeat": 3},
        "smooth": {"act": "tanh"},
        "biased": {"shift": 0.25, "scale": 0.5},
    }
    return [table[n] for n in names]


def resolve(layers):
    merged = dict(DEFAULTS)
    view = {"name": "run", "options": merged}
    for layer in layers:
        merged |= layer
    return view


def block(x, opt):
    act = ACTS[opt["act"]]
    for _ in range(opt["repeat"]):
        x = act(x * opt["scale"] + opt["shift"])
    return x


def forward(x, layers):
    run = resolve(layers)
    y = block(x, run["options"])
    return y, run["options"]["repeat"]


@traced
def evaluate(fn, x, names):
    y, repeat = fn(x, make_layers(names))
    return {"names": names, "value": y, "repeat": repeat}


def sweep(fn, x):
    everything = ("wide", "deep", "smooth", "biased")
    for k in (0, 1, 2):
        for combo in itertools.combinations(everything, k):
            yield evaluate(fn, x, combo)


def table(rows):
    lines = []
    for r in rows:
        lines.append(f"{'+'.join(r['names']) or 'none':<16} repeat={r['repeat']} sum={float(r['value'].sum()):.4f}")
    return lines


def main():
    torch._dynamo.config.recompile_limit = 32
    x = torch.linspace(-1, 1, 7)
    eager = table(sweep(forward, x))
    compiled = table(sweep(torch.compile(forward, backend="eager"), x))
    wrong = 0
    for a, b in zip(eager, compiled):
        mark = "  " if a == b else "!!"
        wrong += a != b
        print(mark, a, "|", b)
    print("evaluations:", evaluate.calls)
    if wrong:
        raise SystemExit(f"{wrong} of {len(eager)} sweep points ignore their overrides under torch.compile")


if __name__ == "__main__":
    main()
