"""The list of what torch imports for a compile, kept for other builds."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.mark.torch
def test_the_modules_beside_torch_are_listed_once(tmp_path: Path) -> None:
    from torchbisect.probe.agent.run import imported_modules

    folder = tmp_path / "kept"
    imported_modules.keep(str(folder))
    place = folder / imported_modules.NAME
    listed = place.read_text(encoding="utf-8").splitlines()
    assert {"torch/__init__.py", "torch/nn/functional.py"} <= set(listed)
    assert not any(name.startswith(("/", "..")) or not name.endswith(".py") for name in listed)
    written = place.stat().st_mtime_ns
    imported_modules.keep(str(folder))
    assert place.stat().st_mtime_ns == written
    place.write_text("\n".join(["torch/_old.py", *listed[1:]]), encoding="utf-8")
    imported_modules.keep(str(folder))
    assert set(place.read_text(encoding="utf-8").splitlines()) == {"torch/_old.py", *listed}
    assert [file.name for file in folder.iterdir()] == [imported_modules.NAME]
    imported_modules.keep(str(place))  # no folder: nothing happens
    place.write_bytes(b"\xff")
    imported_modules.keep(str(folder))
    assert set(listed) <= set(place.read_text(encoding="utf-8").splitlines()), "a spoilt list is mended"
    assert [file.name for file in folder.iterdir()] == [imported_modules.NAME]
