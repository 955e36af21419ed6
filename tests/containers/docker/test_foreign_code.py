"""Code of packages during an install in containers: none runs with a network, as root, or where it can write."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from torchbisect.containers.docker.environments import DockerEnvironments
from torchbisect.core.build import Build
from torchbisect.core.errors import InputError

pytestmark = pytest.mark.long

Make = Callable[..., DockerEnvironments]

#: Code that leaves a mark wherever it may write, and notes who it is.
MARKS = """
import os
SEEN = {"user": os.getuid(), "marked": [], "variables": dict(os.environ)}
for folder, folders, files in os.walk("/torchbisect"):
    if "/venvs/" in folder + "/" or folder.count("/") < 4 and "/making/" not in folder:
        for place in [os.path.join(folder, "mark"), *(os.path.join(folder, name) for name in files)]:
            try:
                open(place, "a").close()
                SEEN["marked"].append(place)
            except OSError:
                pass
"""
FIND = ["sh", "-c", "find /torchbisect -name mark; find /torchbisect -user 65534"]


def test_nothing_of_a_wheel_runs_where_it_could_write(tree: Any, in_docker: Make) -> None:
    """The .pth file runs when torch is imported for the first time: as nobody, and read-only."""
    tree.add("torch", "2.8.0", more={"marks.pth": "import marks\n", "marks.py": MARKS, "sitecustomize.py": MARKS})
    environments = in_docker()
    environment = environments.environment(Build("2.8.0"))
    volume = environments.volume
    assert volume.run_program(FIND) == ""
    owners = volume.run_program(["sh", "-c", "find /torchbisect/venvs -type d -exec stat -c '%u %a' {} + | sort -u"])
    assert owners.split() == ["0", "755"]
    compiled = volume.run_program(["sh", "-c", "find /torchbisect/venvs -path '*/torch/*.pyc' -exec stat -c %u {} +"])
    assert compiled.split() == ["0"]
    done = environment.run(["-c", "import json, marks; print(json.dumps(marks.SEEN))"], timeout=300)
    seen = json.loads(done.output)
    assert (seen["user"], seen["marked"]) == (65534, [])


def test_the_installer_cannot_write_to_other_environments(tree: Any, in_docker: Make) -> None:
    tree.add("torch", "2.7.0")
    environments = in_docker()
    environments.environment(Build("2.7.0"))
    volume = environments.volume
    script = "find /torchbisect /torchbisect/making -maxdepth 0 -writable; find /torchbisect/venvs -type d -writable"
    assert volume.run_program(["sh", "-c", script], user=65532) == ""


def test_a_source_package_writes_to_its_own_environment_only(tree: Any, in_docker: Make) -> None:
    tree.add("torch", "2.7.0")
    tree.add("torch", "2.8.0")
    tree.add_sdist("built", "1.0", MARKS)
    in_docker().environment(Build("2.7.0"))
    with pytest.raises(InputError, match=r"--with built has no wheel .*--allow-sdists"):
        in_docker(packages=["built"]).environment(Build("2.8.0"))
    environments = in_docker(packages=["built"], allow_sdists=True)
    environment = environments.environment(Build("2.8.0"))
    seen = json.loads(environment.run(["-c", "import built, json; print(json.dumps(built.SEEN))"], timeout=300).output)
    assert seen["user"] not in (0, 65532, 65534)
    assert seen["marked"] == []
    assert environments.volume.run_program(FIND) == ""
    owners = environments.volume.run_program(
        ["sh", "-c", f"find /torchbisect/venvs/{environments.key(Build('2.8.0'))} -exec stat -c %u {{}} + | sort -u"]
    )
    assert owners.split() == ["0"]
    assert environments.volume.run_program(["ls", "/torchbisect/making"]) == ""
