"""A real torch in a container: installed, compiled with, and overlaid with the Python files of another commit."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest
import torch
from attacks import check_attacks, check_one_container_for_each_repro
from corrupted import CORRUPTED
from engine import BASE

from torchbisect.containers.docker.engine import NETWORK_VARIABLE
from torchbisect.containers.docker.environments import DockerEnvironments
from torchbisect.containers.docker.images import ImageOptions
from torchbisect.containers.docker.volume import MAKING
from torchbisect.containers.environment import Environment
from torchbisect.containers.index.indexes import Indexes
from torchbisect.containers.python.interpreter import Interpreter
from torchbisect.containers.store.cache import Cache
from torchbisect.core.build import Build
from torchbisect.core.repro import Repro, Settings
from torchbisect.core.verdict import Answer, MismatchKind
from torchbisect.probe.agent_client import Agent
from torchbisect.probe.journal import Journal
from torchbisect.probe.judge.signature import Signature
from torchbisect.probe.oracle import Question
from torchbisect.probe.pool import Pool
from torchbisect.probe.probe import Probe

pytestmark = [pytest.mark.torch, pytest.mark.e2e]

COMPILE = """
import os, torch
f = torch.compile(lambda x: torch.relu(x.sin()) + 1)
x = torch.linspace(-1, 1, 64)
assert torch.allclose(f(x), torch.relu(x.sin()) + 1)
print(torch.__version__, os.listdir("/sys/class/net"))
"""

BESIDE = """
import torch
from sizes import WIDTH
print(torch.compile(lambda x: x + 1, backend="eager")(torch.ones(WIDTH)).shape)
"""
# What Python's own math has stands for the width: two that make a tensor and one that is not there.
NAMES = ("math import pi; WIDTH = int(pi)", "math import e; WIDTH = int(e)", "math import nothing as WIDTH")


@pytest.fixture(scope="module")
def environments(engine_host: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DockerEnvironments]:
    """Environments in a volume of their own; its removal shows that nothing holds it any more."""
    volume = f"torchbisect-test-{uuid.uuid4().hex[:12]}"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(NETWORK_VARIABLE, "host")
        made = DockerEnvironments(
            Cache(tmp_path_factory.mktemp("cache")),
            Indexes.from_configuration(),
            image=ImageOptions(base=BASE),
            volume=volume,
        )
        try:
            yield made
        finally:
            made.close()
            client = docker.from_env(timeout=300)
            client.volumes.get(volume).remove()
            client.close()


@pytest.fixture(scope="module")
def environment(environments: DockerEnvironments, interpreter: Interpreter) -> Environment:
    """The version installed here, installed there."""
    return environments.environment(Build(str(interpreter.installed_torch)))


def test_a_real_torch_compiles_with_no_network_and_nothing_writable(environment: Environment, tmp_path: Path) -> None:
    """Inductor's C++ is compiled and run in confinement."""
    done = environment.run(["-c", COMPILE], timeout=600)
    assert done.status == 0, done
    assert done.output.split(maxsplit=1) == [environment.facts.torch, "['lo']\n"]
    (tmp_path / "sizes").mkdir()
    (tmp_path / "sizes" / "__init__.py").write_text("from .wide import WIDTH\n")
    (tmp_path / "sizes" / "wide.py").write_text("WIDTH = 3\n")
    with Agent(environment) as agent:
        seen = agent.observe(Repro(BESIDE, directory=str(tmp_path)), Settings())
    assert (seen.compiled.how, seen.compiled.output, seen.differences) == ("finished", "torch.Size([3])\n", ())


def test_two_agents_answer_at_once(environment: Environment) -> None:
    signature = Signature(MismatchKind.VALUES, attribute="value", place="output")
    asked = [Question(Repro(BESIDE.replace("sizes import WIDTH", name)), signature) for name in NAMES]
    with Probe(environment, Journal()) as probe, Pool(probe, 2) as pool:
        for helper in pool._starting:
            helper.result()
        pool.expect(asked[1:])
        assert [pool.ask(question).answer for question in asked] == [Answer.NONE, Answer.NONE, Answer.UNTESTABLE]


@pytest.mark.long
def test_corrupted_memory_is_seen_by_a_plain_process_in_a_container(environment: Environment) -> None:
    with Probe(environment, Journal()) as probe:
        assert probe.mismatch(Repro(CORRUPTED.format(backend="corrupting"))) is None
        found = probe.mismatch_in_plain_process(Repro(CORRUPTED.format(backend="corrupting")))
        assert found is not None
        assert (found.kind, found.signature.exception) == (MismatchKind.CRASH, "SIGABRT")


@pytest.mark.long
def test_scripts_that_attack_meet_limits_and_leave_nothing(
    environments: DockerEnvironments, environment: Environment
) -> None:
    check_attacks(environment)
    check_one_container_for_each_repro(environments, environment)


@pytest.mark.long
def test_an_overlay_replaces_files_of_the_same_binaries(
    environments: DockerEnvironments, environment: Environment
) -> None:
    """Overlay other files on the same binaries, in a copy that is removed afterwards."""
    planted = "torch/_dynamo/backends/debugging.py"
    text = (Path(torch.__file__).parents[1] / planted).read_text()
    wrong = "return lambda *inputs: [output + 1 for output in gm.forward(*inputs)]"
    changed = text.replace("return gm.forward", wrong, 1)
    assert changed != text
    repro = Repro("import torch\ntorch.compile(lambda x: x + 1, backend='eager')(torch.ones(3))")
    layer = {planted: changed.encode(), "torch/_dynamo/none.py": None, "torch/_dynamo/new.py": b"new = 1\n"}
    with environments.with_overlay(environment.build, layer, "c0ffee" * 6) as overlaid:
        assert overlaid.build.commit == overlaid.facts.git_version == "c0ffee" * 6
        code = "import torch._dynamo.new; print(torch.version.git_version)"
        assert overlaid.run(["-c", code], timeout=300).output == "c0ffee" * 6 + "\n"
        with Agent(overlaid) as agent:
            assert agent.observe(repro, Settings()).differences[0].kind is MismatchKind.VALUES
    with Agent(environment) as agent:
        assert agent.observe(repro, Settings()).differences == ()
    assert environments.volume.run_program(["ls", MAKING]) == ""
