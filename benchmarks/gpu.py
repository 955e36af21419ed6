"""Try the whole tool on a machine with a GPU, in one command that ends within ten minutes.

    python benchmarks/gpu.py [--out FOLDER] [--minutes 9] [--jobs N] [--device cuda] [--corpus FOLDER] [--only WORD]

It needs the torch of this Python, built for CUDA, and no network. It runs ``doctor``; ``check`` of small scripts on
the card, and of each that shows a mismatch there on the CPU too; ``minimize`` of those that only the card shows, and
of the large scripts; ``check`` of every script of a corpus (a folder of folders with ``repro.py``) on the card; and
``check`` by a number. A table of verdicts goes to standard output and everything else into the folder. ``--device
cpu`` tries this script itself.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

COMMAND = [sys.executable, "-m", "torchbisect"]
LARGE = Path(__file__).resolve().parent / "large"

_HEAD = "import torch\nimport torch.nn.functional as F\n\n"
#: A name, the parameters of a function that is compiled, what it returns, and its arguments.
EXPRESSIONS = (
    ("nan times zero", "x", "x * 0", "torch.full((4,), float('nan'))"),
    ("softmax of a wide row", "x", "F.softmax(x, -1).sum()", "torch.arange(70000.0)[None]"),
    ("softmax of a masked row", "x", "F.softmax(x, -1)", "torch.full((4, 8192), float('-inf'))"),
    ("reduction in float16", "x", "x.sum(-1)", "torch.full((8, 4096), 40.0, dtype=torch.float16)"),
    ("attention in bfloat16", "q", "F.scaled_dot_product_attention(q, q, q, is_causal=True).shape",
     "torch.randn(2, 4, 128, 64, dtype=torch.bfloat16)"),
    ("attention with a masked row", "q, m", "F.scaled_dot_product_attention(q, q, q, attn_mask=m)",
     "torch.ones(1, 1, 16, 16), torch.zeros(16, 16, dtype=torch.bool)"),
    ("integer division by zero", "x, y", "x // y",
     "torch.arange(4, dtype=torch.int32), torch.zeros(4, dtype=torch.int32)"),
    ("shift by more than the width", "x", "x << 40", "torch.ones(4, dtype=torch.int32)"),
    ("float8 of a large number", "x", "x.to(torch.float8_e4m3fn).float()", "torch.full((4,), 1000.0)"),
    ("negative float to uint8", "x", "x.to(torch.uint8)", "torch.tensor([-1.5, 300.0])"),
    ("uint8 wraps before a shift", "x", "(x + 100) >> 1", "torch.full((4,), 200, dtype=torch.uint8)"),
    ("subnormal quotient", "x", "torch.exp(x) / torch.exp(x)", "torch.full((4,), -100.0)"),
    ("reciprocal of a subnormal", "x", "1 / (x * 1e-20)", "torch.full((4,), 1e-20)"),
    ("floor division of infinity", "x", "torch.div(x, 2, rounding_mode='floor')", "torch.full((4,), float('inf'))"),
    ("remainder by infinity", "x, y", "torch.remainder(x, y)", "torch.tensor([-1.0]), torch.tensor([float('inf')])"),
    ("arg max of nan", "x", "x.argmax(-1), x.max(-1)", "torch.tensor([[1.0, float('nan'), 3.0]])"),
    ("cumulative max of nan", "x", "torch.cummax(x, 0)", "torch.tensor([1.0, float('nan'), 3.0])"),
    ("log cumulative sum", "x", "torch.logcumsumexp(x, 0)", "torch.full((4096,), float('-inf'))"),
    ("variance far from zero", "x", "x.var(-1)", "torch.arange(4096.0)[None] % 2 + 1e4"),
    ("bucket of nan", "x, y", "torch.bucketize(x, y)", "torch.full((4,), float('nan')), torch.arange(8.0)"),
    ("addmm with beta zero", "c, x", "torch.addmm(c, x, x, beta=0)",
     "torch.full((32, 32), float('nan')), torch.ones(32, 32)"),
    ("maximum of zeros", "x", "1 / torch.maximum(x, -x)", "torch.zeros(4) * -1"),
    ("scatter of nan", "x, i", "torch.zeros(4).scatter_reduce(0, i, x, 'amax')",
     "torch.full((8,), float('nan')), torch.zeros(8, dtype=torch.int64)"),
    ("atomic scatter", "x, i", "torch.zeros(8, dtype=torch.int64).index_add(0, i, x)",
     "torch.arange(4096), torch.arange(4096) % 8"),
    ("grid sample of nan", "x, g", "F.grid_sample(x, g, align_corners=False)",
     "torch.ones(1, 1, 4, 4), torch.full((1, 2, 2, 2), float('nan'))"),
    ("out of range index", "x, i", "x[i]", "torch.ones(4), torch.tensor([7])"),
    ("too much memory", "x", "x.expand(1 << 40).contiguous()", "torch.ones(1)"),
)  # fmt: skip
SCRIPTS = {
    "layer norm backward": (
        "def f(x, w):\n    return F.layer_norm(x, (64,), w)\n\n"
        "x, w = torch.randn(32, 64, requires_grad=True), torch.ones(64, requires_grad=True)\n"
        "torch.compile(f)(x, w).square().sum().backward()\nprint(w.grad.norm())\n"
    ),
    "dropout with a seed": (
        "def f(x):\n    return F.dropout(x, 0.5)\n\n"
        "torch.manual_seed(0)\nprint(torch.compile(f)(torch.ones(1024)).sum())\n"
    ),
    "cuda graphs": (
        "@torch.compile(mode='reduce-overhead')\ndef f(x):\n    return x.sin() + 1\n\n"
        "a = f(torch.ones(4))\nb = f(torch.zeros(4))\nprint(a, b)\n"
    ),
    "max autotune": (
        "@torch.compile(mode='max-autotune')\ndef f(x):\n    return (x @ x).relu()\n\n"
        "print(f(torch.ones(256, 256)).sum())\n"
    ),
    "a kernel of triton": (
        "import triton\nimport triton.language as tl\n\n\n@triton.jit\ndef double(x, y, n, BLOCK: tl.constexpr):\n"
        "    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n"
        "    tl.store(y + at, tl.load(x + at, at < n) * 2, at < n)\n\n\n@torch.compile\ndef f(x):\n"
        "    y = torch.empty_like(x)\n    double[(1,)](x, y, x.numel(), BLOCK=128)\n    return y\n\n\n"
        "print(f(torch.ones(100, device='cuda')))\n"
    ),
}
_LOOP = "\n\nx = torch.ones(1 << 22)\nfor _ in range(6):\n    f(x)\n"
MEASURED = {
    "kernel-count": "@torch.compile\ndef f(x):\n    return F.softmax(x.view(1024, -1), -1)\n" + _LOOP,
    "memory": "@torch.compile\ndef f(x):\n    return x.sin().cos() @ x\n" + _LOOP,
    "time": "@torch.compile\ndef f(x):\n    return x.sin().cumsum(0)\n" + _LOOP,
}


@dataclass(frozen=True)
class Row:
    """The result of one command: its script, its device, its exit status, its first words, and its seconds."""

    name: str
    device: str
    status: int | str
    words: str
    seconds: float

    def __str__(self) -> str:
        return f"| {self.name} | {self.device} | {self.status} | {self.words} | {self.seconds:.0f} |"


@dataclass(frozen=True)
class Trial:
    """A place for results, the time when the last command has to end (``time.monotonic``), and a word to choose by."""

    out: Path
    until: float
    only: str

    @property
    def left(self) -> float:
        """Seconds that are left."""
        return self.until - time.monotonic()

    def run(self, command: str, name: str, script: Path, device: str, *options: str) -> Row | None:
        """Run one command on a script and show its result; ``None`` if it isn't chosen or no time is left."""
        if self.left < 20 or self.only not in name:
            return None
        folder = self.out / f"{command}-{name.replace(' ', '-')}-{device}"
        words = [command, "--torch", "installed", "--device", device, "--out", str(folder), *options, str(script)]
        began = time.monotonic()
        status: int | str = "stopped"
        with (self.out / f"{folder.name}.txt").open("w", encoding="utf-8") as log:
            try:
                done = subprocess.run([*COMMAND, *words], stdout=log, stderr=log, check=False, timeout=self.left)
                status = done.returncode
            except subprocess.TimeoutExpired:
                pass
        row = Row(f"{command} {name}", device, status, _first_words(folder), time.monotonic() - began)
        print(row, flush=True)
        return row


def _first_words(folder: Path) -> str:
    """Return what a report says about the mismatch, its backend and its shrunk script."""
    try:
        report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return "no report"
    words = [report.get("verdict") or "", (report.get("mismatch") or {}).get("summary") or ""]
    words += [(report.get("localization") or {}).get("backend") or ""]
    minimal = report.get("minimal")
    words += [f"{minimal['lines']} lines, stands alone: {minimal['stands_alone']}"] if minimal else []
    return "; ".join(" ".join(word.split()).replace("|", "\\|") for word in words if word)


def written(folder: Path, scripts: dict[str, str]) -> Iterator[tuple[str, Path]]:
    """Write scripts, and yield each with its name."""
    for name, text in scripts.items():
        path = folder / f"{name.replace(' ', '_')}.py"
        path.write_text(_HEAD + text, encoding="utf-8")
        yield name, path


def small_scripts() -> dict[str, str]:
    """Return the small scripts by name."""
    made = {
        name: f"\n@torch.compile\ndef f({parameters}):\n    return {result}\n\n\nprint(f({arguments}))\n"
        for name, parameters, result, arguments in EXPRESSIONS
    }
    return made | SCRIPTS


def try_everything(trial: Trial, device: str, corpus: Path | None, jobs: int) -> None:
    """Run all commands for which there is time, several at once."""
    subprocess.run([*COMMAND, "doctor"], check=False, timeout=trial.left)
    print("| command | device | exit | result | seconds |\n|---|---|---|---|---|", flush=True)

    def try_small(item: tuple[str, Path]) -> Path | None:
        on_card = trial.run("check", *item, device)
        if on_card is None or on_card.status != 0:
            return None
        on_cpu = trial.run("check", *item, "cpu") if device != "cpu" else None
        return item[1] if on_cpu is None or on_cpu.words != on_card.words else None

    with ThreadPoolExecutor(jobs) as pool:
        shown = [one for one in pool.map(try_small, list(written(trial.out, small_scripts()))) if one]
        print(f"only on {device}: {', '.join(one.stem for one in shown) or 'none'}", flush=True)
        large = [one for one in sorted(LARGE.glob("*.py")) if not one.name.endswith(".minimal.py")]
        scripts = sorted(corpus.glob("*/repro.py")) if corpus else []
        asked = [pool.submit(trial.run, "minimize", one.stem, one, device) for one in shown]
        for measure, script in written(trial.out, MEASURED):
            options = ["--measure", measure, "--against", "installed"]
            asked.append(pool.submit(trial.run, "check", measure, script, device, *options))
        asked += [pool.submit(trial.run, "check", one.parent.name, one, device) for one in scripts]
        asked += [pool.submit(trial.run, "minimize", one.stem, one, device) for one in large]
        for one in asked:
            one.result()


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the options and try everything."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("gpu-out"))
    parser.add_argument("--minutes", type=float, default=9.0)
    parser.add_argument("--jobs", type=int, default=max(1, len(os.sched_getaffinity(0)) // 2))
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--corpus", type=Path)
    parser.add_argument("--only", default="", help="a part of the name of the scripts that are run")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    trial = Trial(options.out.resolve(), time.monotonic() + 60 * options.minutes, options.only)
    try_everything(trial, options.device, options.corpus, options.jobs)


if __name__ == "__main__":
    main()
