"""The runtime that was named, a seccomp profile and the limits are in force in every container, or the command ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import docker
import pytest
from engine import BASE

from torchbisect.containers.docker.container_processes import Confinement
from torchbisect.containers.docker.engine import LABEL, Engine
from torchbisect.containers.docker.environments import DockerEnvironments
from torchbisect.core.build import Build
from torchbisect.core.errors import InputError, MachineError

pytestmark = pytest.mark.long


def test_an_unknown_runtime_is_one_line(engine_host: str) -> None:
    engine = Engine(runtime="no-such-runtime")
    said = (
        r"has no runtime no-such-runtime \(it has .*runc.*correct --runtime|does not take the runtime no-such-runtime"
    )
    with pytest.raises(InputError, match=said):
        engine.create(BASE, command=["true"])
    assert not engine.client.containers.list(all=True, filters={"label": f"{LABEL}=look"})
    engine.close()


def test_every_container_has_the_named_runtime(
    tree: Any, in_docker: Callable[..., DockerEnvironments], monkeypatch: pytest.MonkeyPatch
) -> None:
    tree.add("torch", "2.0.0")
    created: list[str] = []
    create = docker.models.containers.ContainerCollection.create

    def noted(self: docker.models.containers.ContainerCollection, *args: object, **options: object) -> object:
        container = create(self, *args, **options)
        container.reload()
        created.append(container.attrs["HostConfig"]["Runtime"])
        return container

    client = docker.from_env()
    if any(part["Name"] == "Podman Engine" for part in client.version()["Components"]):
        pytest.skip("Podman takes no runtime for one container")
    name = client.info()["DefaultRuntime"]
    client.close()
    monkeypatch.setattr(docker.models.containers.ContainerCollection, "create", noted)
    environment = in_docker(confinement=Confinement(runtime=name)).environment(Build("2.0.0"))
    assert environment.run(["-c", "print(1)"], timeout=300).output == "1\n"
    assert len(created) >= 4
    assert set(created) == {name}


def test_a_seccomp_profile_is_in_force(tree: Any, in_docker: Callable[..., DockerEnvironments]) -> None:
    tree.add("torch", "2.0.0")
    environment = in_docker().environment(Build("2.0.0"))
    told = environment.run(["-c", "print(open('/proc/self/status').read())"], timeout=300).output
    assert "Seccomp:\t2" in told
    assert "NoNewPrivs:\t1" in told


@pytest.mark.parametrize(("option", "word"), [("mem_limit", "memory"), ("pids_limit", "processes")])
def test_a_container_without_its_limits_is_refused(
    engine_host: str, option: str, word: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = Engine()
    create = docker.models.containers.ContainerCollection.create

    def careless(self: docker.models.containers.ContainerCollection, image: str, **options: Any) -> Any:
        """Leave the limit out, as rootless Podman does with cgroups v1."""
        return create(self, image, **{name: value for name, value in options.items() if name != option})

    monkeypatch.setattr(docker.models.containers.ContainerCollection, "create", careless)
    with pytest.raises(MachineError, match=f"does not limit {word}.*DOCKER_HOST"):
        engine.create(BASE, command=["true"], **{option: 64 << 20 if option == "mem_limit" else 64})
    engine.close()


def test_an_engine_without_control_groups_is_refused(engine_host: str) -> None:
    """A rootless Docker with cgroups v1 says so, and answers with the limits all the same."""
    engine = Engine()
    engine.information["CgroupDriver"] = "none"
    with pytest.raises(MachineError, match=r"does not limit memory.*DOCKER_HOST"):
        engine.create(BASE, command=["true"], mem_limit=64 << 20)
    engine.close()
