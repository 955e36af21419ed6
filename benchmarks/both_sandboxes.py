"""The torch that is installed here in a virtual environment and in a container, and a question to ask in both."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing

from torchbisect.containers.docker.environments import DockerEnvironments
from torchbisect.containers.docker.images import ImageOptions
from torchbisect.containers.environment import Environment
from torchbisect.containers.index.indexes import Indexes
from torchbisect.containers.python.interpreter import Interpreter
from torchbisect.containers.store.cache import Cache
from torchbisect.containers.venv.environments import VenvEnvironments
from torchbisect.core.build import Build, Channel

#: A script for a question; each ``number`` makes another one, which no journal or cache has answered.
SCRIPT = """\
import torch
def step(x, w):
    return torch.tanh(x @ w).sum() * {number}
x, w = torch.randn(8, 8), torch.randn(8, 8, requires_grad=True)
torch.compile(step, backend="eager")(x, w).backward()
"""


def both_sandboxes(image: str | None) -> Iterator[tuple[str, Environment]]:
    """Yield ``venv`` and ``docker``, each with its environment, which is made when it is its turn."""
    interpreter = Interpreter.of(sys.executable)
    version = str(interpreter.installed_torch)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        cache = Cache(folder)
        venvs = VenvEnvironments(cache, interpreter, Indexes.from_configuration())
        stack.enter_context(closing(venvs))
        yield "venv", venvs.environment(Build(version, Channel.INSTALLED))
        contained = DockerEnvironments(cache, Indexes.from_configuration(), image=ImageOptions(image))
        stack.enter_context(closing(contained))
        yield "docker", contained.environment(Build(version))
