"""Byte code linked from one folder of modules to the next; a real Python uses it only for the same source."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from torchbisect.containers.python.interpreter import Interpreter
from torchbisect.containers.store.bytecode import (
    SAVE_BYTECODE,
    bytecode_folder,
    imported_modules,
    link_known_bytecode,
    remove_unused_bytecode,
)

#: Says which of the modules Python had to compile.
IMPORT = "import sys; sys.path.insert(0, sys.argv[1]); import same, changed; print(same.VALUE, changed.VALUE)"


def imported(site: Path) -> tuple[str, list[str]]:
    """Import the modules; return their values and the modules whose byte code was written."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-v", "-c", IMPORT, str(site)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    wrote = [line for line in done.stderr.splitlines() if line.startswith("# created") and str(site) in line]
    return done.stdout.strip(), sorted(Path(line.split("'")[1]).name.partition(".")[0] for line in wrote)


def site_with(place: Path, changed: int) -> Path:
    place.mkdir()
    (place / "same.py").write_text("VALUE = 1\n")
    (place / "changed.py").write_text(f"VALUE = {changed}\n")
    return place


def test_known_modules_are_not_compiled_again_and_changed_ones_are(tmp_path: Path) -> None:
    interpreter = Interpreter.of(sys.executable)
    store = bytecode_folder(tmp_path / "bytecode", interpreter)
    first = site_with(tmp_path / "first", 2)
    assert link_known_bytecode(store, first, interpreter) == frozenset()
    assert imported(first) == ("1 2", ["changed", "same"])
    store.mkdir(parents=True)
    subprocess.run([sys.executable, "-c", SAVE_BYTECODE, str(first), str(store)], check=True)
    assert len(list(store.iterdir())) == 2
    assert all(kept.stat().st_nlink == 2 for kept in store.iterdir()), "nothing is kept twice"
    assert imported(first) == ("1 2", [])

    second = site_with(tmp_path / "second", 3)
    assert link_known_bytecode(store, second, interpreter) == {"same.py"}
    assert imported(second) == ("1 3", ["changed"])
    (second / "same.py").write_text("VALUE = 7\n")
    assert imported(second)[0] == "7 3", "byte code is held against the source at each import"

    remove_unused_bytecode(tmp_path / "bytecode")
    assert len(list(store.iterdir())) == 2
    shutil.rmtree(first)
    remove_unused_bytecode(tmp_path / "bytecode")
    assert len(list(store.iterdir())) == 0, "the second folder's was written anew"


def test_the_lists_of_modules_name_nothing_outside_of_an_environment(tmp_path: Path) -> None:
    listed = [tmp_path / "one", tmp_path / "two", tmp_path / "missing"]
    listed[0].write_text("torch/a.py\n../../etc/b.py\n/c.py\ntorch/_C.so")
    listed[1].write_bytes(b"torch/d.py\ntorch/a.py")
    assert imported_modules(listed) == {"torch/a.py", "torch/d.py"}
    listed[1].write_bytes(b"\xff")
    assert imported_modules(listed) == {"torch/a.py"}
