"""Environments in a real container engine, from an index of small wheels."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import docker
import pytest
from engine import BASE

from torchbisect.containers.docker.container_processes import Confinement
from torchbisect.containers.docker.engine import NETWORK_VARIABLE
from torchbisect.containers.docker.environments import DockerEnvironments
from torchbisect.containers.docker.images import ImageOptions
from torchbisect.containers.index.indexes import Indexes
from torchbisect.containers.store.cache import Cache
from torchbisect.core.retry import RetryPolicy

SHORT = RetryPolicy(first_wait=0.01, longest_wait=0.05, total=0.15)


@pytest.fixture
def confinement() -> Confinement:
    """Tight limits, so that they are soon met."""
    return Confinement(memory=256 << 20, scratch=32 << 20, processes=64)


@pytest.fixture
def in_docker(
    engine_host: str,
    tmp_path: Path,
    tree: Any,
    serve_tree: Any,
    confinement: Confinement,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Callable[..., DockerEnvironments]]:
    """Make environments in the engine, in this test's own volume, from an index on this machine's loopback."""
    monkeypatch.setenv(NETWORK_VARIABLE, "host")
    served = serve_tree(tree)
    volume = f"torchbisect-test-{uuid.uuid4().hex[:12]}"
    made: list[DockerEnvironments] = []

    def begin(**options: Any) -> DockerEnvironments:
        options = {
            "image": ImageOptions(base=BASE),
            "confinement": confinement,
            "volume": volume,
            "retry": SHORT,
            **options,
        }
        indexes = Indexes(f"{served.url}/simple", allow_sdists=options.pop("allow_sdists", False))
        made.append(DockerEnvironments(Cache(tmp_path / "cache"), indexes, **options))
        return made[-1]

    yield begin
    for environments in made:
        environments.close()
    if made:
        client = docker.from_env(timeout=300)
        client.volumes.get(volume).remove()
        client.close()
