"""The line that sets a script's default device, and a machine that lacks the device."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from running import Tool

from torchbisect.pipeline.script import with_default_device
from torchbisect.probe.script_variables import variables_of

pytestmark = pytest.mark.slow

LINE = "import torch; torch.set_default_device('cuda')"


@pytest.mark.parametrize(
    ("source", "at"),
    [
        ("import torch\nprint(1)\n", 1),
        ('"""What it is."""\nimport torch\n', 2),
        ("# said\nimport torch\n", 2),
        ('"""What\nit is."""\nfrom __future__ import annotations\nx = 1\n', 4),
        ("# a comment\nfrom __future__ import annotations", 3),
        ("", 1),
        ("x = 1; y = 2\n", 1),
        ("import os\nos.environ['TORCHINDUCTOR_MAX_AUTOTUNE'] = '1'\nimport torch\nx = 1\n", 3),
        ("import os\nif True:\n    import torch\nfrom torch import nn\n", 4),
        ("import os; import torch\n", 1),
    ],
)
def test_the_line_precedes_what_uses_torch(source: str, at: int) -> None:
    made = with_default_device(source, "cuda")
    joined = [f"{LINE}; {line}" for line in source.splitlines()[at - 1 : at]]
    assert made.splitlines()[at - 1] in (LINE, *joined)
    compile(made, "repro.py", "exec")
    assert made.replace(LINE + "; ", "", 1).replace(LINE + "\n", "", 1).rstrip("\n") == source.rstrip("\n")


@given(
    st.lists(st.sampled_from(["import torch\n", "x = 1\n", "# said\n", "\n", "def f():\n    return 1\n"])),
    st.sampled_from(["", '"""Said."""\n', '"""Said."""\nfrom __future__ import annotations\n']),
)
def test_the_rest_of_the_script_stays_as_it_is(parts: list[str], head: str) -> None:
    source = head + "".join(parts)
    before, after = ast.parse(source).body, ast.parse(with_default_device(source, "cuda")).body
    first = next(at for at, one in enumerate(after) if ast.unparse(one) == "torch.set_default_device('cuda')")
    assert ast.unparse(after[first - 1]) == "import torch"
    assert [ast.dump(one) for one in before] == [ast.dump(one) for one in after[: first - 1] + after[first + 1 :]]
    assert ast.get_docstring(ast.parse(with_default_device(source, "cuda"))) == ast.get_docstring(ast.parse(source))
    assert with_default_device(source, "cpu") == with_default_device(source, None) == source


def test_variables_that_a_script_sets_for_torch_are_found_above_the_line() -> None:
    source = "import os\nos.environ['TORCHINDUCTOR_MAX_AUTOTUNE'] = '1'\nimport torch\n"
    assert variables_of(with_default_device(source, "cuda")) == {"TORCHINDUCTOR_MAX_AUTOTUNE": "1"}


def test_a_machine_without_a_gpu(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    done = tool.run("check", tool.write("import torch\n"), "--device", "cuda")
    assert done.returncode == 5
    assert "nvidia-smi lists no GPU" in done.stderr
    assert "Traceback" not in done.stderr
