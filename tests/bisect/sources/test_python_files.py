"""The files that can be replaced without a build, and their changes between two commits."""

from __future__ import annotations

import pytest
from pytorch_clone import Clone

from torchbisect.bisect.sources.history import History
from torchbisect.bisect.sources.python_files import changed_python, is_native, is_replaceable


def test_the_changed_python_files_between_two_commits(clone: Clone, history: History) -> None:
    assert changed_python(history, clone.shas[0], clone.shas[3]) == {
        "torch/_dynamo/a.py": b"a = 1\n",
        "torch/_inductor/b.py": b"b = 1\n",
    }
    assert changed_python(history, clone.shas[0], clone.shas[0]) == {}


@pytest.mark.parametrize(
    ("path", "replaceable", "native"),
    [
        ("torch/_dynamo/a.py", True, False),
        ("torchgen/gen.py", True, False),
        ("torch/_dynamo/graph_break_registry.json", True, False),
        ("torch/version.py", False, False),
        ("torch/../../x.py", False, False),
        ("torch/csrc/dynamo/guards.cpp", False, True),
        ("aten/src/ATen/native/native_functions.yaml", False, True),
        ("test/dynamo/test_misc.py", False, False),
        ("tools/autograd/gen.py", False, True),
        ("tools/autograd/derivatives.yaml", False, True),
        ("tools/linter/adapters/x.py", False, False),
        ("torch/_inductor/codegen/cpp_prefix.h", True, False),
        ("torch/_export/serde/schema.yaml", False, False),
        ("torch/nativert/executor/x.cpp", False, True),
        ("torch/_dynamo/x.pyi", False, False),
    ],
)
def test_replaceable_and_native_files(path: str, replaceable: bool, native: bool) -> None:
    assert (is_replaceable(path), is_native(path)) == (replaceable, native)
