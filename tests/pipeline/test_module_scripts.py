"""A script that is named as a module: where it is looked for, and what is said where it is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchbisect.core.errors import InputError
from torchbisect.pipeline.options import Options
from torchbisect.pipeline.script import open_script


def test_the_working_directory_comes_before_pythonpath(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("work", "src"):
        (tmp_path / folder / "acme").mkdir(parents=True)
        (tmp_path / folder / "acme" / "both.py").write_text(f"FROM = {folder!r}\n")
    (tmp_path / "src" / "acme" / "train.py").write_text("from . import both\n")
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("PYTHONPATH", "../src")
    assert open_script(Options(Path("acme.both"), module=True)).source == "FROM = 'work'\n"
    found = open_script(Options(Path("acme.train"), module=True))
    assert found.source == "from acme import both\n"
    assert found.place.module == "acme.train"
    assert found.place.folder == tmp_path / "src" / "acme"


@pytest.mark.parametrize(
    ("name", "said"),
    [("pytest", "name the test itself"), ("unittest", "name the test itself"), ("acme.absent", "or in PYTHONPATH")],
)
def test_a_module_that_is_not_there(name: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    with pytest.raises(InputError, match=said):
        open_script(Options(Path(name), module=True))
