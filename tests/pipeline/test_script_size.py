"""The size of a script with its modules."""

from __future__ import annotations

from pathlib import Path

from torchbisect.core.repro import Repro
from torchbisect.pipeline.script_size import repro_size


def test_the_size_of_the_original_counts_the_modules_that_it_imports(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text("import layers\nX = 1\n")
    (tmp_path / "layers.py").write_text("Y = 2\n")
    (tmp_path / "unused.py").write_text("Z = 3\n" * 100)
    alone, whole = repro_size(Repro("import model\n")), repro_size(Repro("import model\n", directory=str(tmp_path)))
    assert (alone.lines, whole.lines) == (1, 4)
    assert whole.bytes == sum(map(len, ("import model\n", "import layers\nX = 1\n", "Y = 2\n")))
    assert whole.nodes > alone.nodes
