"""Environments in a real engine: the same answers as on this machine, and nothing left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import docker
import pytest
from engine import BASE

from torchbisect.containers.docker.engine import LABEL, Engine
from torchbisect.containers.docker.environments import DockerEnvironments
from torchbisect.containers.docker.images import ImageOptions
from torchbisect.containers.docker.volume import VENVS
from torchbisect.containers.environment import Environment, Environments
from torchbisect.containers.inventory import list_engine
from torchbisect.core.build import Build, Channel
from torchbisect.core.errors import DiskFull, InputError, InstallFailed
from torchbisect.core.repro import Repro
from torchbisect.probe.journal import Journal
from torchbisect.probe.test_command import LARGEST_FOLDER, CommandProbe

pytestmark = pytest.mark.long

Make = Callable[..., DockerEnvironments]


def engine_objects() -> dict[str, int]:
    """Return the numbers of containers and volumes in the engine, torchbisect's and others'."""
    client = docker.from_env(timeout=300)
    try:
        return {
            "containers": len(client.containers.list(all=True, filters={"label": LABEL})),
            "volumes": len(client.volumes.list()),
            "networks": len(client.networks.list()),
        }
    finally:
        client.close()


def test_a_build_is_installed_and_runs(tree: Any, in_docker: Make) -> None:
    tree.add("torch", "2.8.0+cpu")
    tree.add("einops", "0.8.0", source="")
    environments: Environments = in_docker(packages=["einops"])
    build = Build("2.8.0")
    assert not environments.has(build)
    environment: Environment = environments.environment(build)
    assert environment.facts.torch == "2.8.0+cpu"
    assert environments.has(build)
    done = environment.run(["-c", "import sys, torch, einops; print(torch.__version__); sys.exit(7)"], timeout=300)
    assert (done.status, done.output, done.errors) == (7, "2.8.0+cpu\n", "")
    again = in_docker(packages=["einops"])
    assert again.environment(build).facts == environment.facts


def test_lines_go_in_and_out_byte_for_byte(tree: Any, in_docker: Make) -> None:
    tree.add("torch", "2.8.0")
    environment = in_docker().environment(Build("2.8.0"))
    echo = "for line in sys.stdin.buffer: sys.stdout.buffer.write(line); sys.stdout.flush()"
    process = environment.start(["-c", f"import sys\nprint('why', file=sys.stderr)\n{echo}"])
    for line in (b"plain\n", b"\x00\xff\xfe \r \x1b[0m\n", b"x" * 300_000 + b"\n", b"\n"):
        process.send(line)
        assert process.read_line(300) == line
    assert process.read_line(0.05) is None
    assert process.kill() == -signal.SIGKILL
    assert process.kill() == -signal.SIGKILL
    assert process.errors() == "why\n"
    assert process.read_line(1) == b""
    with pytest.raises(BrokenPipeError):
        process.send(b"x")
    ended = environment.start(["-c", "print('a'); print('b', end=''); exit(3)"])
    assert [ended.read_line(300) for _ in range(4)] == [b"a\n", b"b", b"", b""]
    assert ended.kill() == 3


def test_a_folder_is_copied_in_and_its_path_replaced(tree: Any, in_docker: Make, tmp_path: Path) -> None:
    tree.add("torch", "2.8.0")
    environment = in_docker().environment(Build("2.8.0"))
    folder = tmp_path / "folder"
    (folder / "inner").mkdir(parents=True)
    (folder / "inner" / "data.txt").write_text("the data")
    (folder / "link").symlink_to("/etc/hostname")
    (folder / "script.py").write_text(
        "import os, sys\nprint(open(sys.argv[1]).read(), os.environ['PLACE'], os.getcwd(), sys.stdin.read() == '')\n"
        "print(sorted(os.listdir()))"
    )
    data = str(folder / "inner" / "data.txt")
    extra = {"PLACE": f"{folder}/inductor"}
    done = environment.run(["script.py", data], timeout=300, directory=str(folder), extra=extra)
    assert done.output == "the data /tmp/work/inductor /tmp/work True\n['inner', 'script.py']\n", done.errors


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"tag": "cp311-cp311-win_amd64"}, "no-wheel"),
        ({"requires": ("nosuch",)}, "dependency-missing"),
        ({"source": "import nosuchmodule\n"}, "import-failed"),
        ({"source": "__version__ = '2.7.9'\n"}, "other-version"),
    ],
)
def test_a_build_that_cannot_be_installed_has_a_named_reason(
    options: dict[str, Any], reason: str, tree: Any, in_docker: Make
) -> None:
    tree.add("torch", "2.8.0", **options)
    environments = in_docker()
    with pytest.raises(InstallFailed) as caught:
        environments.environment(Build("2.8.0"))
    assert caught.value.reason == reason
    assert not environments.has(Build("2.8.0"))
    assert environments.volume.run_program(["ls", "/torchbisect/making"]) == ""


def test_equal_files_of_two_environments_are_stored_once(tree: Any, in_docker: Make) -> None:
    tree.add("torch", "2.7.0")
    tree.add("torch", "2.8.0")
    environments = in_docker()
    for version in ("2.7.0", "2.8.0"):
        environments.environment(Build(version))
    files = "/torchbisect/venvs/*/lib/python3*/site-packages/numpy/*.py"
    listed = environments.volume.run_program(["sh", "-c", f"stat -c %h {files}"])
    assert listed.split() == ["3", "3"]
    assert len(environments.volume.environments()) == 2
    assert not environments.evict_oldest()
    environments.release(Build("2.7.0"))
    assert environments.evict_oldest()
    assert [environments.has(Build(version)) for version in ("2.7.0", "2.8.0")] == [False, True]
    assert environments.environment(Build("2.7.0")).facts.torch == "2.7.0"


def test_an_install_without_room_gets_that_of_what_is_kept_in_reserve(
    tree: Any, in_docker: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree.add("torch", "2.7.0")
    tree.add("torch", "2.8.0")
    environments = in_docker()
    environments.environment(Build("2.7.0"))
    installer, refusals = type(environments._installer), [DiskFull("no room")]
    install = installer.make

    def make(*arguments: Any) -> str:
        if refusals:
            raise refusals.pop()
        return install(*arguments)

    monkeypatch.setattr(installer, "make", make)
    with environments._cache.giving_back(lambda: environments.release(Build("2.7.0"))):
        environments.environment(Build("2.8.0"))
    assert [environments.has(Build(version)) for version in ("2.7.0", "2.8.0")] == [False, True]


def test_facts_that_were_torn_are_read_again(tree: Any, in_docker: Make) -> None:
    tree.add("torch", "2.8.0")
    environments = in_docker()
    facts = environments.environment(Build("2.8.0")).facts
    environments.volume.write_facts(f"{VENVS}/{environments.key(Build('2.8.0'))}", '{"torch": "2.8')
    assert in_docker().environment(Build("2.8.0")).facts == facts


def test_prefetch_can_be_cancelled(tree: Any, in_docker: Make) -> None:
    tree.add("torch", "2.8.0")
    environments = in_docker()
    cancel = threading.Event()
    cancel.set()
    environments.prefetch(Build("2.8.0"), cancel)
    assert not environments.has(Build("2.8.0"))
    environments.prefetch(Build("2.8.0"), threading.Event())
    assert environments.has(Build("2.8.0"))


def test_the_installed_torch_is_refused_in_a_container(in_docker: Make) -> None:
    with pytest.raises(InputError, match="--torch"):
        in_docker().environment(Build("2.8.0", Channel.INSTALLED))


def test_an_image_without_the_required_programs_is_refused(engine_host: str, in_docker: Make) -> None:
    with pytest.raises(InputError, match="lacks uv"):
        in_docker(image=ImageOptions(BASE))
    with pytest.raises(InputError, match="correct --image"):
        in_docker(image=ImageOptions("torchbisect-no-such-image:1"))


def test_many_runs_leave_nothing(tree: Any, in_docker: Make) -> None:
    tree.add("torch", "2.8.0")
    environments = in_docker()
    environment = environments.environment(Build("2.8.0"))
    before = engine_objects()
    for number in range(100):
        assert environment.run(["-S", "-c", f"print({number})"], timeout=300).output == f"{number}\n"
    assert engine_objects() == before
    environments.close()
    assert engine_objects()["containers"] == before["containers"] - 1


KILLED = """
import sys
from torchbisect.containers.docker.engine import Engine
engine = Engine()
create = engine.client.containers.create
container = create(sys.argv[1], command=["600"], entrypoint=["sleep"], labels=engine.labels("run"))
container.start()
print(container.id, flush=True)
sys.stdin.read()
"""


def test_the_next_run_removes_containers_of_a_killed_run(engine_host: str) -> None:
    command = [sys.executable, "-c", KILLED, BASE]
    engine = Engine()
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as owner:
        assert owner.stdout is not None
        identity = owner.stdout.readline().decode().strip()
        engine.sweep()
        assert engine.client.containers.get(identity).status == "running"
        os.kill(owner.pid, signal.SIGKILL)
        owner.wait()
    assert engine.sweep() >= 1
    with pytest.raises(docker.errors.NotFound):
        engine.client.containers.get(identity)
    engine.close()


def test_the_next_run_removes_a_killed_runs_unfinished_environment(tree: Any, in_docker: Make) -> None:
    tree.add("torch", "2.8.0")
    first = in_docker()
    first.environment(Build("2.8.0"))

    def unfinished() -> list[str]:
        return first.volume.run_program(["sh", "-c", "mkdir -p /torchbisect/making; ls /torchbisect/making"]).split()

    assert unfinished() == []
    for name in ("dead", "living", "another-volumes"):
        with first._unfinished(name):
            first.volume.run_program(["sh", "-c", f"mkdir -p /torchbisect/making/{name}/bin"])
            note = first._cache.install_lock(first._lock_name(name)).path
            text = note.read_text()
        note.write_text("torchbisect-other" if name == "another-volumes" else text)  # as if killed before the end
    with first._cache.install_lock(first._lock_name("living")).held():
        in_docker()
        assert unfinished() == ["another-volumes", "living"]


def test_the_inventory_lists_volume_and_image(tree: Any, in_docker: Make) -> None:
    """Pruning is tested on an engine of its own, since it would remove others' images here."""
    tree.add("torch", "2.8.0")
    environments = in_docker()
    environments.environment(Build("2.8.0"))
    things = {thing.name: thing for thing in list_engine(environments.engine)}
    volume = things[environments.volume.name]
    assert volume.kind == "volume"
    assert volume.busy
    assert volume.size > 10_000
    image = things[environments.image.name]
    assert image.kind == "image"
    assert image.size > 10**6


def test_a_users_test_command_finds_its_folder(tree: Any, in_docker: Make, tmp_path: Path) -> None:
    """The test may write into its copy of the folder; modules that the script imports are in it."""
    tree.add("torch", "2.8.0")
    environment = in_docker().environment(Build("2.8.0"))
    folder, scripts = tmp_path / "folder", tmp_path / "scripts"
    for place in (folder, folder / ".git", folder / "data", scripts):
        place.mkdir()
    (folder / "test.sh").write_text(
        'test "$(cat data/limit)" = 3 && test ! -e .git && echo x > written && test "$PWD" != "$TORCHBISECT_SCRATCH" '
        '&& exec python "$TORCHBISECT_SCRIPT"\nexit 9'
    )
    (folder / "data" / "limit").write_text("3")
    (folder / "link").symlink_to("/etc/hostname")
    os.mkfifo(folder / "pipe")
    (scripts / "beside.py").write_text("STATUS = 4")
    repro = Repro("import beside, torch; raise SystemExit(beside.STATUS)", directory=str(scripts))
    with CommandProbe(environment, Journal(), "sh test.sh", directory=str(folder)) as probe:
        done = probe.run(repro)
        assert (done.status, done.errors) == (4, "")
        assert not (folder / "written").exists()
        (folder / "large").touch()
        os.truncate(folder / "large", LARGEST_FOLDER + 1)
        with pytest.raises(InputError, match="more than 256 MB"):
            probe.run(Repro("another"))
