"""Try the whole tool on a machine with a GPU, in one command that ends within ten minutes.

    python benchmarks/gpu.py [--out FOLDER] [--minutes 9] [--device cuda] [--corpus FOLDER]

It needs the torch of this Python, built for CUDA, and no network. It runs ``doctor``; ``check`` of small scripts on the
card and on the CPU, to see what only the card shows; ``minimize`` of the first mismatch of the card; and ``check`` of
every script of a corpus (a folder of folders with ``repro.py``) on the card, for as long as there is time. A table of
verdicts goes to standard output and everything else into the folder. ``--device cpu`` tries this script itself.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

COMMAND = [sys.executable, "-m", "torchbisect"]
LARGE = Path(__file__).resolve().parent / "large"

_HEAD = "import torch\nimport torch.nn.functional as F\n\n"
SCRIPTS = {
    "nan times zero": "def f(x):\n    return x * 0\n\nprint(torch.compile(f)(torch.full((4,), float('nan'))))\n",
    "softmax of a wide row": (
        "def f(x):\n    return F.softmax(x, -1)\n\nprint(torch.compile(f)(torch.arange(70000.0)[None]).sum())\n"
    ),
    "reduction in float16": (
        "def f(x):\n    return x.sum(-1)\n\nprint(torch.compile(f)(torch.full((8, 4096), 40.0, dtype=torch.float16)))\n"
    ),
    "atomic scatter": (
        "def f(x, i):\n    return torch.zeros(8, dtype=torch.int64).index_add(0, i, x)\n\n"
        "print(torch.compile(f)(torch.arange(4096), torch.arange(4096) % 8))\n"
    ),
    "layer norm backward": (
        "def f(x, w):\n    return F.layer_norm(x, (64,), w)\n\n"
        "x, w = torch.randn(32, 64, requires_grad=True), torch.ones(64, requires_grad=True)\n"
        "torch.compile(f)(x, w).square().sum().backward()\nprint(w.grad.norm())\n"
    ),
    "attention in bfloat16": (
        "def f(q):\n    return F.scaled_dot_product_attention(q, q, q, is_causal=True)\n\n"
        "print(torch.compile(f)(torch.randn(2, 4, 128, 64, dtype=torch.bfloat16)).shape)\n"
    ),
    "dropout with a seed": (
        "def f(x):\n    return F.dropout(x, 0.5)\n\n"
        "torch.manual_seed(0)\nprint(torch.compile(f)(torch.ones(1024)).sum())\n"
    ),
    "division of integers by zero": (
        "def f(x, y):\n    return x // y\n\n"
        "print(torch.compile(f)(torch.arange(4, dtype=torch.int32), torch.zeros(4, dtype=torch.int32)))\n"
    ),
    "out of range index": (
        "def f(x, i):\n    return x[i]\n\nprint(torch.compile(f)(torch.ones(4), torch.tensor([7])))\n"
    ),
    "cuda graphs": (
        "@torch.compile(mode='reduce-overhead')\ndef f(x):\n    return x.sin() + 1\n\n"
        "a = f(torch.ones(4))\nb = f(torch.zeros(4))\nprint(a, b)\n"
    ),
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
    """A place for results, and the time when the last command has to end, as ``time.monotonic``."""

    out: Path
    until: float

    @property
    def left(self) -> float:
        """Seconds that are left."""
        return self.until - time.monotonic()

    def run(self, command: str, name: str, script: Path, device: str) -> Row:
        """Run one command on a script and show its result."""
        folder = self.out / f"{command}-{name.replace(' ', '-')}-{device}"
        words = [command, "--torch", "installed", "--device", device, "--out", str(folder), str(script)]
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
    return "; ".join(word.replace("|", "\\|") for word in words if word)


def small_scripts(folder: Path) -> Iterator[tuple[str, Path]]:
    """Write the small scripts, and yield each with its name."""
    for name, text in SCRIPTS.items():
        path = folder / f"{name.replace(' ', '_')}.py"
        path.write_text(_HEAD + text, encoding="utf-8")
        yield name, path


def try_everything(trial: Trial, device: str, corpus: Path | None) -> None:
    """Run all commands for which there is time."""
    subprocess.run([*COMMAND, "doctor"], check=False, timeout=trial.left)
    print("| command | device | exit | result | seconds |\n|---|---|---|---|---|", flush=True)
    shown: list[Path] = []
    for name, script in small_scripts(trial.out):
        if trial.left > 20 and trial.run("check", name, script, device).status == 0:
            shown.append(script)
            if trial.left > 20 and device != "cpu":
                trial.run("check", name, script, "cpu")
    for script in (*shown[:2], LARGE / "overlap_add.py"):
        if trial.left > 60:
            trial.run("minimize", script.stem, script, device)
    for script in sorted(corpus.glob("*/repro.py")) if corpus else ():
        if trial.left > 20:
            trial.run("check", script.parent.name, script, device)


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the options and try everything."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("gpu-out"))
    parser.add_argument("--minutes", type=float, default=9.0)
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--corpus", type=Path)
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    trial = Trial(options.out.resolve(), time.monotonic() + 60 * options.minutes)
    try_everything(trial, options.device, options.corpus)


if __name__ == "__main__":
    main()
