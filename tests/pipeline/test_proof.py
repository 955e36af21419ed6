"""The change of a commit on the installed torch: one that fixes a mismatch, and others that show nothing."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from compiling import FILE, LINE, SCRIPT
from pytorch_clone import Clone

from torchbisect.bisect.sources.history import Commit, History
from torchbisect.core.build import Build, Channel
from torchbisect.core.repro import Repro
from torchbisect.core.verdict import MismatchKind
from torchbisect.pipeline.build_oracle import BuildOracle
from torchbisect.pipeline.local_provider import LocalProvider
from torchbisect.pipeline.options import Options
from torchbisect.pipeline.progress import Display
from torchbisect.pipeline.session import Session
from torchbisect.pipeline.stages.proof import MOST_TRIED, Prover
from torchbisect.probe.judge.matching import Strictness
from torchbisect.probe.judge.signature import Signature
from torchbisect.probe.oracle import Question

pytestmark = pytest.mark.torch

OTHER = "torch/_dynamo/backends/debugging.py"
THIRD = "torch/_dynamo/config.py"
SIGNATURE = Signature(
    MismatchKind.VALUES, place="output", attribute="value", eager="number", compiled="number", relative=0.5
)


@dataclass(frozen=True)
class World:
    """A prover over the installed torch, and the commits by a short name."""

    prover: Prover
    commits: dict[str, Commit]
    build: Build


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    place, site = tmp_path_factory.mktemp("pytorch"), Path(torch.__file__).parents[1]
    clone = Clone(place)
    clone.git("init", "-q", "-b", "main")
    text, other, third = ((site / name).read_text() for name in (FILE, OTHER, THIRD))
    fixed = text.replace(LINE, LINE.replace("True", "False"))
    clone.commit("Base", {FILE: text, OTHER: other, THIRD: third, "c10/x.h": "0", "docs/x.md": "x"})
    made = {
        "comment": clone.commit("A comment", {OTHER: f"{other}\n# a comment\n"}),
        "conflict": clone.commit("More of the comment", {OTHER: f"{other}\n# a longer comment\n"}),
        "native": clone.commit("Both", {OTHER: f"{other}\n# longer still\n", "c10/x.h": "1"}),
        "docs": clone.commit("Documents", {"docs/x.md": "y"}),
        "fix": clone.commit("Fix", {FILE: fixed}),
        "broken": clone.commit("Broken", {THIRD: f"{third}\nraise ImportError('planted')\n"}),
    }
    folder = tmp_path_factory.mktemp("run")
    options = Options(script=folder / "repro.py", out=folder / "out", cache_dir=folder / "cache", repeat=1)
    display, build = Display(stream=io.StringIO()), Build(torch.__version__, Channel.INSTALLED)
    provider = LocalProvider(options, display)
    session = Session.open(options, display, provider, display.warn)
    history = History.open(str(place), folder)
    question = Question(Repro(SCRIPT), SIGNATURE, strictness=Strictness.TOLERANT)
    prover = Prover(session, BuildOracle(session), history, question, reverted=False)
    with provider.environment(build):
        yield World(prover, {name: history.commit(sha) for name, sha in made.items()}, build)
    session.workspace.close()
    provider.close()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("native", "changes compiled code (c10/x.h)"),
        ("docs", "no file that an installed torch has"),
        ("conflict", "does not apply here"),
    ],
)
def test_a_change_that_no_wheel_can_show(world: World, name: str, words: str) -> None:
    proof = world.prover.prove(world.commits[name], world.build)
    assert (proof.passes, words in proof.sentence) == (None, True), proof.sentence


def test_suspects_are_tried_up_to_a_bound(world: World) -> None:
    """Compiled code and documents are passed over."""
    likely = [world.commits[name] for name in ("native", "docs", *["conflict"] * (MOST_TRIED + 2))]
    tried = world.prover.find(likely, world.build)
    assert [proof.commit for proof in tried] == [world.commits["conflict"]] * MOST_TRIED


@pytest.mark.long
def test_suspects_are_tried_until_one_makes_it_pass(world: World) -> None:
    """One does not apply, one has no effect, one leaves a torch that can't be imported."""
    order = ["conflict", "comment", "broken", "fix", "native"]
    tried = world.prover.find([world.commits[name] for name in order], world.build)
    assert [proof.passes for proof in tried] == [None, False, None, True], [proof.sentence for proof in tried]
    assert tried[1].sentence.endswith("does not make it pass")
    assert "planted" in tried[2].sentence
    assert tried[3].sentence == f"Applying {world.commits['fix'].short} on {world.build} makes it pass"
