"""The environment variables of torch that a script sets before it imports torch."""

from __future__ import annotations

import pytest

from torchbisect.probe.script_variables import is_allowed, variables_of

FREEZING = 'import os\nos.environ["TORCHINDUCTOR_FREEZING"] = "1"\n'


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (FREEZING + "import torch\n", {"TORCHINDUCTOR_FREEZING": "1"}),
        ('from os import environ\nenviron.setdefault("OMP_NUM_THREADS", "1")\n', {"OMP_NUM_THREADS": "1"}),
        ("import torch\n" + FREEZING, {}),
        ('import os\nos.environ["PATH"] = "x"\nimport torch\n', {}),
        ('import os\nif 1:\n    os.environ["TORCH_X"] = "1"\nimport torch\n', {}),
        ("import os\nos.environ['TORCH_X'] = str(1)\n", {}),
        ('import os\nos.environ["TORCH_LOGS"] = "dynamo"\nimport torch\n', {}),
        ("environ = [\n", {}),
        ("x = 1\n", {}),
    ],
)
def test_the_variables_of_a_script(source: str, expected: dict[str, str]) -> None:
    assert variables_of(source) == expected


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("TORCHINDUCTOR_FREEZING", "1", True),
        ("CUDA_VISIBLE_DEVICES", "0,1", True),
        ("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True", True),
        ("TRITON_INTERPRET", "1", True),
        ("OMP_TOOL_LIBRARIES", "x.so", False),
        ("TRITON_PLUGIN_DIRS", "x", False),
        ("PATH", "1", False),
        ("LD_PRELOAD", "x.so", False),
        ("PYTHONPATH", "x", False),
        ("TORCH_HOME", "x", False),
        ("TRITON_PTXAS_PATH", "ptxas", False),
        ("TORCHINDUCTOR_CACHE_DIR", "x", False),
        ("TORCH_X", "/tmp/x", False),
        ("TORCH_X", "a\nb", False),
        ("TORCHDYNAMO_REPRO_AFTER", "dynamo", False),
    ],
)
def test_only_variables_of_torch_are_allowed(name: str, value: str, allowed: bool) -> None:
    assert is_allowed(name, value) is allowed
