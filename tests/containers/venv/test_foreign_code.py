"""Code of packages during an install: wheels run none, and source packages only if the user allows it."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from torchbisect.containers.environment import Environment
from torchbisect.containers.venv.environments import VenvEnvironments
from torchbisect.core.build import Build
from torchbisect.core.errors import InputError, InstallFailed

#: They run uv many times over: too slow for the tier that every change runs, though they need no torch.
pytestmark = pytest.mark.torch

Make = Callable[..., VenvEnvironments]

#: A line of a .pth file, which every Python that starts with ``site`` runs; it tells which variables it saw.
TELLS = "import os, json; open({place!r}, 'a').write(json.dumps(dict(os.environ)) + chr(10))\n"
SEEN = "import os\nSEEN = dict(os.environ)\nopen({place!r}, 'w').write('ran')\n"


def seen_by(environment: Environment, module: str) -> dict[str, str]:
    """Return the variables that a package's build saw."""
    done = environment.run(["-c", f"import json, {module}; print(json.dumps({module}.SEEN))"], timeout=60)
    found: dict[str, str] = json.loads(done.output)
    return found


def test_a_source_package_is_built_only_if_the_user_allows_it(
    tree: Any, make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "hunter2seven")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    place = tmp_path / "ran"
    tree.add("torch", "2.8.0")
    tree.add_sdist("built", "1.0", SEEN.format(place=str(place)))
    with pytest.raises(InputError, match=r"--with built has no wheel .*--allow-sdists"):
        make(tree.url, packages=["built"]).environment(Build("2.8.0"))
    assert not place.exists()
    venvs = make(tree.url, packages=["built"], allow_sdists=True)
    variables = seen_by(venvs.environment(Build("2.8.0")), "built")
    assert place.read_text() == "ran"
    assert "hunter2seven" not in variables.values()
    assert variables["HOME"] != str(tmp_path / "home")
    assert not list(Path(variables["HOME"]).parent.glob("sdists"))


def test_a_source_package_among_the_requirements_is_not_built_either(tree: Any, make: Make, tmp_path: Path) -> None:
    place = tmp_path / "ran"
    tree.add_sdist("built", "1.0", SEEN.format(place=str(place)))
    tree.add("needs", "1.0", source="", requires=("built",))
    tree.add("torch", "2.8.0")
    tree.add("torch", "2.7.0", requires=("built",))
    with pytest.raises(InputError, match="--with needs has no wheel"):
        make(tree.url, packages=["needs"]).environment(Build("2.8.0"))
    with pytest.raises(InstallFailed) as caught:
        make(tree.url).environment(Build("2.7.0"))
    assert caught.value.reason == "dependency-missing"
    assert not place.exists()


def test_source_packages_and_a_password_do_not_go_together(tree: Any, make: Make) -> None:
    tree.add("torch", "2.8.0")
    with pytest.raises(InputError, match="--allow-sdists") as caught:
        make("https://ann:hunter2seven@host.example/simple", allow_sdists=True).environment(Build("2.8.0"))
    assert "hunter2seven" not in str(caught.value)


def test_no_pth_file_runs_with_the_users_variables(
    tree: Any, make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """uv starts the environment's Python; nothing of a package is in it by then."""
    monkeypatch.setenv("SOME_API_KEY", "hunter2seven")
    monkeypatch.setenv("UV_COMPILE_BYTECODE", "1")
    (tmp_path / "uv.toml").write_text("[pip]\ncompile-bytecode = true\n")
    monkeypatch.setenv("UV_CONFIG_FILE", str(tmp_path / "uv.toml"))
    place = tmp_path / "ran"
    more = {"tells.pth": TELLS.format(place=str(place)), "sitecustomize.py": TELLS.format(place=str(place))}
    for version in ("3.4.0", "3.5.0"):
        tree.add("triton", version, source=f"VERSION = {version!r}\n")
    tree.add("tells", "1.0", source="", more=more)
    tree.add("torch", "2.8.0", requires=("triton==3.4.0",))
    venvs = make(tree.url, packages=["tells"])
    with venvs.with_package(Build("2.8.0"), "triton==3.5.0") as environment:
        assert environment.run(["-c", "import triton; print(triton.VERSION)"], timeout=60).output == "3.5.0\n"
        assert list(environment.python.parents[1].glob("lib/python3*/site-packages/tells.pth"))
    seen = [json.loads(line) for line in place.read_text().splitlines()]
    assert seen, "the check of the installed torch runs as a script does"
    for variables in seen:
        assert "hunter2seven" not in variables.values()
        assert not [name for name in variables if name.startswith("UV_")]


@pytest.mark.parametrize(
    ("package", "words"),
    [
        ("nosuch", "there is no package nosuch"),
        ("numpy==99", "--with numpy==99 can't be had"),
        ("lost", "--with lost can't be had .*nosuch"),
        ("winonly", "--with winonly has no wheel"),
    ],
)
def test_a_package_that_cannot_be_had_is_named_and_torch_is_not_blamed(
    package: str, words: str, tree: Any, make: Make
) -> None:
    tree.add("torch", "2.8.0")
    tree.add("lost", "1.0", source="", requires=("nosuch>=1",))
    tree.add("winonly", "1.0", source="", tag="cp311-cp311-win_amd64")
    with pytest.raises(InputError, match=words):
        make(tree.url, packages=["setuptools", package]).environment(Build("2.8.0"))


def test_a_package_that_conflicts_with_this_torch_is_named(tree: Any, make: Make) -> None:
    tree.add("torch", "2.8.0")
    tree.add("torch", "2.9.0")
    tree.add("needy", "1.0", source="", requires=("torch>=2.9",))
    venvs = make(tree.url, packages=["needy"])
    with pytest.raises(InstallFailed, match="--with needy") as caught:
        venvs.environment(Build("2.8.0"))
    assert caught.value.reason == "dependency-conflict"
    assert venvs.environment(Build("2.9.0")).facts.torch == "2.9.0"
    assert os.listdir(venvs._cache.unfinished) == []


_URL = "http://169.254.169.254/secret-1.0-py3-none-any.whl"
#: Files of a wheel by their path in it, beside what every wheel has, and requirements.
ODD_WHEELS: dict[str, tuple[dict[str, str], tuple[str, ...]]] = {
    "climbs": ({"../../../../climbed.txt": "x"}, ()),
    "absolute": ({"/climbed.txt": "x"}, ()),
    "replaces-python": ({"odd-1.0.data/scripts/python": "#!/bin/sh\necho replaced\n"}, ()),
    "replaces-config": ({"odd-1.0.data/data/pyvenv.cfg": "home = /nowhere\n"}, ()),
    "data-climbs": ({"odd-1.0.data/data/../../../climbed.txt": "x"}, ()),
    "shadows-torch": ({"torch/__init__.py": "raise SystemExit(0)\n"}, ()),
    "shadows-json": ({"json/__init__.py": "raise SystemExit(0)\n"}, ()),
    "deep-source": ({"deep.py": "a = " + "-" * 200_000 + "1\n", "deeper.py": "(" * 50_000 + ")" * 50_000}, ()),
    "large-constant": ({"large.py": "a = ((1,) * 250,) * 250, 'x' * 4000, 1 << 120, " + "9" * 4000 + "\n"}, ()),
    "requires-an-address": ({}, (f"secret @ {_URL}",)),
    "requires-a-file": ({}, ("secret @ file:///etc/passwd",)),
    "requires-itself": ({}, ("odd>1",)),
    "many-requirements": ({}, tuple(f"nosuch{number}" for number in range(2000))),
    "entry-points": (
        {"odd-1.0.dist-info/entry_points.txt": "[console_scripts]\npython = odd:main\n../x = odd:main\n"}, (),
    ),
    "torch-backend": (
        {"odd-1.0.dist-info/entry_points.txt": "[torch_dynamo_backends]\ninductor = odd:main\neager = odd:main\n"}, (),
    ),
}  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("name", ODD_WHEELS)
def test_a_package_reaches_nothing_outside_of_its_environment(name: str, tree: Any, make: Make, tmp_path: Path) -> None:
    """It ends with the name of the package, or with an environment whose Python and torch are the right ones."""
    more, requires = ODD_WHEELS[name]
    tree.add("torch", "2.8.0")
    tree.add("odd", "1.0", source="def main(*_): raise SystemExit(0)\n", more=more, requires=requires)
    began, refused = time.monotonic(), None
    try:
        environment = make(tree.url, packages=["odd"]).environment(Build("2.8.0"))
        done = environment.run(["-c", "import torch, sys; print(torch.__version__, sys.prefix)"], timeout=60)
        assert done.output == f"2.8.0 {environment.python.parents[1]}\n", done
    except (InputError, InstallFailed) as error:
        refused = error
    assert refused is None or str(refused).isprintable()
    assert refused is None or isinstance(refused, InputError) or more or "odd" in str(refused), "torch is blamed"
    assert time.monotonic() - began < 60
    assert not list(tmp_path.rglob("climbed.txt"))
    assert not os.path.exists("/climbed.txt")
