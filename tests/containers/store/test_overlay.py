"""Files laid over an environment stay inside it, whatever a wheel names them."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchbisect.containers.store.overlay import overlay_files


@pytest.fixture
def site(tmp_path: Path) -> Path:
    site = tmp_path / "env" / "lib" / "python3.11" / "site-packages"
    (site / "torch").mkdir(parents=True)
    (tmp_path / "env" / "pyvenv.cfg").touch()
    (site / "torch" / "version.py").write_text("git_version = 'a'\n")
    (tmp_path / "outside").mkdir()
    (site / "torch" / "link").symlink_to(tmp_path / "outside")
    return site


@pytest.mark.parametrize(
    "path",
    [
        "torch/../../../../../outside/x.py",
        "../x.py",
        "/tmp/x.py",
        "torch/./x.py",
        "torch//x.py",
        "..",
        "torch/link/x.py",
    ],
)
def test_a_path_that_leads_out_is_refused(site: Path, tmp_path: Path, path: str) -> None:
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(ValueError, match=r"site-packages|symbolic link"):
        overlay_files(tmp_path / "env", {"torch/new.py": b"", path: b"x"}, "c0ffee")
    assert sorted(tmp_path.rglob("*")) == before


def test_files_are_replaced_added_and_removed(site: Path, tmp_path: Path) -> None:
    (site / "torch" / "old.py").touch()
    layer = {"torch/new/deep.py": b"x = 1", "torch/old.py": None, "top.py": b""}
    overlay_files(tmp_path / "env", layer, "c0ffee")
    assert (site / "torch" / "new" / "deep.py").read_bytes() == b"x = 1"
    assert not (site / "torch" / "old.py").exists()
    assert (site / "torch" / "version.py").read_text() == "git_version = 'c0ffee'\n"
