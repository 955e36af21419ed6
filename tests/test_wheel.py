"""The wheel that is made by way of the source distribution has every file of the source tree, and works alone."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest
import uv

ROOT = Path(__file__).resolve().parent.parent
PARTS = ("cli", "api", "triage", "pipeline", "reports", "minimizer", "bisect", "probe", "containers", "core")
SCRIPT = """
import torch

@torch.compile(backend="eager")
def double(x):
    return x * 2

double(torch.ones(2))
"""
#: Reads every data file through the code that needs it.
READS_DATA = """
import importlib.resources
import torchbisect.reports.render.html
from torchbisect.probe import agent_bundle
from torchbisect.reports.model import schema
from torchbisect.triage import issue_table
assert agent_bundle.__file__.startswith({home!r}), agent_bundle.__file__
assert schema.FILE.read_text()
folder = importlib.resources.files("torchbisect.containers.docker")
assert folder.joinpath("dockerfiles/cpu.Dockerfile").read_bytes()
"""


@dataclass(frozen=True)
class Made:
    """The source distribution, the wheel made from it alone, and an environment with nothing else of torchbisect."""

    sdist: Path
    wheel: Path
    python: Path

    def run(self, *words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
        """Run the environment's Python; nothing of this process's paths reaches it."""
        return subprocess.run(
            [self.python, *words],
            cwd=cwd,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
            env={"PATH": f"{self.python.parent}:/usr/bin:/bin", "HOME": str(cwd)},
        )


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Build the distributions and install the wheel.

    The dependencies, torch among them, are not installed again: a ``.pth`` file lends those of this environment. Its
    own ``.pth`` files, one of which leads to the source tree, are not read from there.
    """
    folder = tmp_path_factory.mktemp("wheel")
    program = uv.find_uv_bin()
    for step in (
        [program, "build", "--quiet", "--out-dir", str(folder), str(ROOT)],
        [program, "venv", "--quiet", "--python", sys.executable, str(folder / "venv")],
    ):
        subprocess.run(step, check=True)
    (sdist,), (wheel,) = folder.glob("*.tar.gz"), folder.glob("*.whl")
    python = folder / "venv/bin/python"
    subprocess.run([program, "pip", "install", "--quiet", "--no-deps", "--python", str(python), str(wheel)], check=True)
    site = next(folder.glob("venv/lib/python3*/site-packages"))
    (site / "lent.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    return Made(sdist, wheel, python)


def package_files() -> set[str]:
    """Return the files of the package in the source tree that git knows, by their place below the parts."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z", "--", *PARTS],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    places = [name.partition("/")[2] for name in listed.split("\0") if name and (ROOT / name).is_file()]
    return {place for place in places if place.startswith("torchbisect/")}


@pytest.mark.long
def test_both_distributions_have_every_file_of_the_package(made: Made) -> None:
    wanted = package_files()
    assert {Path(name).suffix for name in wanted} >= {".py", ".Dockerfile", ".j2", ".json", ".js", ".typed"}
    with zipfile.ZipFile(made.wheel) as archive:
        inside = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert inside == wanted
    with tarfile.open(made.sdist) as archive:
        names = {name.partition("/")[2].partition("/")[2] for name in archive.getnames()}
    assert wanted - names == set()


@pytest.mark.long
def test_the_installed_code_finds_its_data(made: Made, tmp_path: Path) -> None:
    done = made.run("-c", READS_DATA.format(home=str(made.python.parents[1])), cwd=tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.long
@pytest.mark.parametrize("flag", ["-V", "--version"])
def test_the_command_and_the_module_name_the_version(made: Made, tmp_path: Path, flag: str) -> None:
    module = made.run("-m", "torchbisect", flag, cwd=tmp_path)
    command = subprocess.run(
        [made.python.with_name("torchbisect"), flag], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    version = made.wheel.name.split("-")[1]
    assert (module.stdout, command.stdout) == (f"torchbisect, version {version}\n",) * 2


@pytest.mark.long
@pytest.mark.torch
def test_the_wheel_checks_a_script(made: Made, tmp_path: Path) -> None:
    (tmp_path / "repro.py").write_text(SCRIPT, encoding="utf-8")
    done = made.run(
        "-m", "torchbisect", "check", "--torch", "installed", "--cache-dir", "cache", "repro.py", cwd=tmp_path
    )
    assert done.returncode == 1, done.stderr
    assert (tmp_path / "torchbisect-out/report.html").exists()
