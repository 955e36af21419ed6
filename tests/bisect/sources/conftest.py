"""A small clone with PyTorch's branches, and its history."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from pytorch_clone import Clone

from torchbisect.bisect.sources.history import History


@pytest.fixture(scope="session")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clone]:
    here = Clone(tmp_path_factory.mktemp("pytorch"))
    here.git("init", "-q", "-b", "main")
    here.commit("Base (#1)", {"torch/_dynamo/a.py": "a = 0\n", "torch/_inductor/b.py": "b = 0\n", "aten/x.cpp": "0"})
    here.commit(
        "[dynamo] Trace setitem (#2)\n\nPull Request resolved: https://github.com/pytorch/pytorch/pull/2",
        {"torch/_dynamo/a.py": "a = 1\n"},
    )
    here.commit("[inductor] Fuse more (#3)", {"torch/_inductor/b.py": "b = 1\n", "test/inductor/test_b.py": "1"})
    here.commit("Speed up add (#4)", {"aten/x.cpp": "1"})
    here.commit(
        'Revert "[inductor] Fuse more (#3)"\n\n'
        f"This reverts commit {here.shas[2]}.\n\n"
        "Reverted https://github.com/pytorch/pytorch/pull/3 on behalf of https://github.com/x due to a red build\n",
        {"torch/_inductor/b.py": "b = 0\n", "test/inductor/test_b.py": None},
    )
    here.commit(
        "Docs\n\nghstack-source-id: abc\nPull Request resolved: https://github.com/pytorch/pytorch/pull/6\n",
        {"docs/x.md": "x"},
    )
    here.nightly("2026-08-15", here.shas[1])
    here.nightly("2026-08-16", here.shas[1])
    here.nightly("2026-08-17", here.shas[4])
    here.git("checkout", "-q", "-b", "release/2.15", here.shas[3])
    here.commit("[cherry-pick] (#7)", {"torch/_dynamo/a.py": "a = 7\n"})
    here.git("checkout", "-q", "main")
    yield here
    shutil.rmtree(here.path)


@pytest.fixture
def history(clone: Clone, tmp_path: Path) -> History:
    return History.open(str(clone.path), tmp_path)
