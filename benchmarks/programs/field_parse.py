# torch: 2.8.0
import textwrap
import torch

SCRIPT = textwrap.dedent(
    """
    scale 3
    shift 2
    scale half
    repeat 2 shift -1
    clamp 0 9
    shift auto
    """
)


class ParseError(Exception):
    pass


NAMED = {"half": 0.5, "double": 2.0}


def number(token, default):
    """Integer literals, a few names, otherwise the data-dependent default."""
    try:
        return int(token)
    except ValueError:
        return NAMED.get(token, default)


def op_scale(x, args):
    return x * number(args[0], x.std())


def op_shift(x, args):
    return x + number(args[0], -x.mean())


def op_clamp(x, args):
    return x.clamp(number(args[0], 0), number(args[1], 1))


def op_repeat(x, args):
    inner = OPS[args[1]]
    for _ in range(number(args[0], 1)):
        x = inner(x, args[2:])
    return x


OPS = {"scale": op_scale, "shift": op_shift, "clamp": op_clamp, "repeat": op_repeat}


def parse(script):
    program = []
    for lineno, line in enumerate(script.strip().splitlines(), 1):
        name, *args = line.split()
        if name not in OPS:
            raise ParseError(f"line {lineno}: unknown command {name!r}")
        program.append((name, tuple(args)))
    return tuple(program)


class Interpreter:
    def __init__(self, script):
        self.program = parse(script)
        self.run = torch.compile(self._run, backend="eager")

    def _run(self, x):
        trace = []
        for name, args in self.program:
            x = OPS[name](x, args)
            trace.append(x.mean())
        return x, torch.stack(trace)


def main():
    x = torch.arange(6.0)
    y, trace = Interpreter(SCRIPT).run(x)
    for (name, args), mean in zip(parse(SCRIPT), trace.tolist()):
        print(f"{name:7s}{' '.join(args):12s} mean {mean:+.3f}")
    assert abs(y.mean().item()) < 1e-5
    expected = ((x * 3 + 2) * 0.5 - 2).clamp(0, 9)
    torch.testing.assert_close(y, expected - expected.mean())


if __name__ == "__main__":
    main()
