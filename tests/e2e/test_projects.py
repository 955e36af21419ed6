"""A script that imports local modules and a library, shrunk to one that imports neither."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest
from running import Tool

pytestmark = pytest.mark.long

# torch 2.13 keeps what a deque of no length forgets.
LIBRARY = {
    "smallnets/__init__.py": "from .model import Net\nfrom . import extras\n",
    "smallnets/extras.py": "raise_if = None\ndef unused(x):\n    return x\n",
    "smallnets/registry.py": "LAYERS = {}\ndef register(cls):\n    LAYERS[cls.__name__] = cls\n    return cls\n",
    "smallnets/model.py": """\
from __future__ import annotations
import collections
from typing import TYPE_CHECKING
import torch.nn as nn
from .registry import LAYERS, register
if TYPE_CHECKING:
    from .settings import Settings

@register
class Recent(nn.Module):
    def __init__(self, settings: Settings):
        super().__init__()
        self.keep = settings.keep

    def forward(self, x):
        recent = collections.deque([1.0, 2.0], maxlen=self.keep)
        return x * (len(recent) + 1.0)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        from .settings import Settings
        self.linear = nn.Linear(4, 4)
        self.recent = LAYERS["Recent"](Settings())

    def forward(self, x):
        return self.recent(self.linear(x))
""",
    "smallnets/settings.py": "from dataclasses import dataclass\n@dataclass\nclass Settings:\n    keep: int = 0\n",
}
OWN = {
    "project/__init__.py": "",
    "project/steps.py": "import torch\nfrom . import numbers as n\ndef step(net): return net(torch.ones(n.ROWS, 4))\n",
    "project/numbers.py": "ROWS = 3\n",
    "train.py": """\
import torch
from smallnets import Net
from project.steps import step
import project.numbers

torch.manual_seed(0)
net = torch.compile(Net())
for number in range(project.numbers.ROWS):
    out = step(net)
print(out.sum())
""",
}


def test_the_result_is_one_script(tmp_path: Path) -> None:
    home = tmp_path / "environment"
    venv.create(home, symlinks=True, with_pip=False)
    site = next(home.glob("lib/python3*/site-packages"))
    (site / "torch.pth").write_text(sysconfig.get_path("purelib") + "\n")
    folder = tmp_path / "work"
    for place, files in ((site, LIBRARY), (folder, OWN)):
        for path, text in files.items():
            (place / path).parent.mkdir(parents=True, exist_ok=True)
            (place / path).write_text(text)
    tool = Tool(folder, tmp_path / "cache")
    done = tool.run("minimize", "train.py", "--python", str(home / "bin" / "python"), "--torch", "installed")
    assert done.returncode == 0, done.stderr
    assert tool.report["minimal"]["stands_alone"], done.stderr
    text = (tool.out / "minimal.py").read_text()
    assert "smallnets" not in text
    assert "project" not in text
    assert len(text.splitlines()) <= 10, text
    alone = subprocess.run([sys.executable, tool.out / "minimal.py"], capture_output=True, check=False, timeout=300)
    assert alone.returncode == 1
