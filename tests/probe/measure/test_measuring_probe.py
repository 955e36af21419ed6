"""A probe measures real processes of two environments; only torch itself is a small module."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from small_torch import small_torch
from waiting import eventually

from torchbisect.containers.environment import Venv
from torchbisect.core.repro import Repro
from torchbisect.core.verdict import Answer, MismatchKind
from torchbisect.probe.journal import Journal
from torchbisect.probe.judge.matching import Strictness
from torchbisect.probe.judge.signature import Signature
from torchbisect.probe.limits import Limits
from torchbisect.probe.localize.compiler_flags import Flag
from torchbisect.probe.measure.helpful_flags import helpful_flags
from torchbisect.probe.measure.kernel_calls import kernel_calls
from torchbisect.probe.measure.measure import Measure
from torchbisect.probe.measure.measuring_options import MeasuringOptions, kept_measurement, measured_runs
from torchbisect.probe.measure.measuring_probe import MeasuringProbe
from torchbisect.probe.oracle import Question
from torchbisect.probe.separate_runs import NOTHING_TRACED

pytestmark = pytest.mark.slow

TORCH = """
__version__ = {version!r}
SPEED = {speed!r}
def keep(copies=SPEED):
    global kept
    kept = [b"x" * (30 << 20) + bytes([number]) for number in range(int(copies))]
"""
PRINTS = "import torch\nprint('speed=%s' % torch.SPEED)\n"


@pytest.fixture(scope="module")
def builds(tmp_path_factory: pytest.TempPathFactory) -> tuple[Venv, Venv]:
    """Two environments: in the second one, a number is twice as high."""
    older, newer = tmp_path_factory.mktemp("older"), tmp_path_factory.mktemp("newer")
    return (
        small_torch(older, "2.1.0", TORCH.format(version="2.1.0", speed=1.0)),
        small_torch(newer, "2.2.0", TORCH.format(version="2.2.0", speed=2.0)),
    )


def options(measure: str, worse_by: float = 1.2, **more: str) -> MeasuringOptions:
    return MeasuringOptions(Measure.parsed(measure), worse_by, timeout=60, **more)


def question(source: str) -> Question:
    return Question(Repro(source), Signature(MismatchKind.SLOW, attribute="time"))


def test_what_a_script_prints_is_compared_and_kept(builds: tuple[Venv, Venv], tmp_path: Path) -> None:
    reference, asked = builds
    journal, what = Journal(tmp_path / "journal.jsonl"), options("metric:speed")
    with MeasuringProbe(asked, reference, journal, what) as probe:
        verdict = probe.ask(question(PRINTS))
        mismatch = probe.mismatch(Repro(PRINTS))
    assert (verdict.answer, verdict.detail) == (Answer.SAME, "metric:speed: 2 where torch 2.1.0 has 1")
    assert mismatch is not None
    assert (mismatch.eager, mismatch.compiled) == ("1 with torch 2.1.0", "2 with torch 2.2.0")
    lines = [json.loads(line) for line in (tmp_path / "journal.jsonl").read_text().splitlines()]
    pairs = [line["value"] for line in lines if "asked" in line["value"]]
    assert len(pairs) == 8, "one pair that compiles and three more, of the reference with itself and of both builds"
    assert {pair["reference"]["values"]["metric:speed"] for pair in pairs} == {1.0}

    again = Journal(tmp_path / "journal.jsonl")
    nobody = Venv(asked.build, asked.facts, Path("/nowhere"), asked.homes)
    with MeasuringProbe(nobody, reference, again, what) as probe:
        assert probe.ask(question(PRINTS)).answer is Answer.SAME
    kept = kept_measurement(again, what, Repro(PRINTS), "2.1.0", "2.2.0")
    assert kept is not None
    assert kept.ratio == 2.0


def test_a_build_is_not_worse_than_itself(builds: tuple[Venv, Venv]) -> None:
    with MeasuringProbe(builds[0], builds[0], Journal(), options("metric:speed")) as probe:
        assert probe.ask(question(PRINTS)).answer is Answer.NONE


@pytest.mark.long
def test_memory_that_is_kept_alive_counts(builds: tuple[Venv, Venv]) -> None:
    with MeasuringProbe(builds[1], builds[0], Journal(), options("memory", 1.2)) as probe:
        verdict = probe.ask(question("import torch\ntorch.keep()\n"))
    assert verdict.answer is Answer.SAME, verdict.detail


@pytest.mark.long
def test_noise_larger_than_the_effect_is_refused(builds: tuple[Venv, Venv]) -> None:
    script = "import math, os, torch\nprint('speed=%s' % math.exp(int.from_bytes(os.urandom(2), 'big') / 1e4))\n"
    with MeasuringProbe(builds[1], builds[0], Journal(), options("metric:speed", 1.02)) as probe:
        verdict = probe.ask(question(script))
    # Once in a hundred times the reference's own noise looks quiet; the comparison then has no answer either.
    assert verdict.answer is Answer.UNTESTABLE
    assert verdict.reason in ("too-noisy", "too-close")


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("import torch\nassert torch.SPEED < 2, 'removed'\nprint('speed=1')\n", "fails"),
        ("import torch\nassert torch.SPEED > 1, 'not yet there'\n", "fails-on-reference"),
        ("import torch\n", "not-measured-on-reference"),
        ("import os, torch\nprint('speed=1', flush=True)\nos._exit(0)\n", "not-measured-on-reference"),
    ],
)
def test_a_script_that_fails_is_no_evidence(builds: tuple[Venv, Venv], source: str, reason: str) -> None:
    with MeasuringProbe(builds[1], builds[0], Journal(), options("metric:speed")) as probe:
        verdict = probe.ask(question(source))
    assert (verdict.answer, verdict.reason) == (Answer.UNTESTABLE, reason), verdict.detail


def test_a_test_command_is_measured(builds: tuple[Venv, Venv], tmp_path: Path) -> None:
    command = "python -c 'import torch; print(\"speed:\", torch.SPEED)'"
    what = options("metric:speed", command=command, directory=str(tmp_path))
    with MeasuringProbe(builds[1], builds[0], Journal(), what) as probe:
        assert probe.ask(Question(Repro("", name=""), Signature(MismatchKind.SLOW))).answer is Answer.SAME


def test_a_candidate_is_compared_with_less_care_and_its_answer_is_kept_apart(
    builds: tuple[Venv, Venv], tmp_path: Path
) -> None:
    def pairs() -> int:
        lines = (tmp_path / "journal.jsonl").read_text().splitlines()
        return sum("asked" in json.loads(line)["value"] for line in lines)

    candidate = replace(question(PRINTS), limits=Limits())
    with MeasuringProbe(builds[1], builds[0], Journal(tmp_path / "journal.jsonl"), options("metric:speed")) as probe:
        assert probe.ask(candidate).answer is Answer.SAME
        assert pairs() == 2, "the first pair, and one that repeats it; the reference is not measured against itself"
        assert probe.ask(question(PRINTS)).answer is Answer.SAME
        assert pairs() == 10, "the final script gets all pairs anew"
        assert probe.observe(Repro(PRINTS)).compiled.seconds > 0


def test_a_candidate_that_fails_on_one_build_is_not_run_on_the_other(builds: tuple[Venv, Venv], tmp_path: Path) -> None:
    (tmp_path / "ran").mkdir()
    fails = f"import os, torch\nopen({str(tmp_path / 'ran')!r} + f'/{{os.getpid()}}', 'w')\nraise ValueError\n"
    with MeasuringProbe(builds[1], builds[0], Journal(), options("metric:speed")) as probe:
        assert probe.ask(replace(question(fails), limits=Limits())).answer is Answer.UNTESTABLE
    assert len(list((tmp_path / "ran").iterdir())) == 1


def test_a_candidate_that_never_ends_is_stopped(builds: tuple[Venv, Venv]) -> None:
    candidate = replace(question("while True:\n    pass\n"), limits=Limits(compiled_floor=1.0))
    with MeasuringProbe(builds[1], builds[0], Journal(), options("metric:speed")) as probe:
        verdict = probe.ask(candidate)
    assert verdict.answer is Answer.UNTESTABLE
    assert "within 1 s" in verdict.detail


def test_a_candidate_that_times_something_else_is_no_smaller_form(builds: tuple[Venv, Venv]) -> None:
    timed = Signature(MismatchKind.SLOW, attribute="time", place="the fastest call of benchmark() after warm-up")
    script = "import time, torch\ntime.sleep(torch.SPEED / 50)\n"
    with MeasuringProbe(builds[1], builds[0], Journal(), options("time")) as probe:
        other = probe.ask(Question(Repro(script), timed, limits=Limits()))
        across = probe.ask(Question(Repro(script), timed, limits=Limits(), strictness=Strictness.TOLERANT))
    assert (other.answer, other.reason) == (Answer.OTHER, "another-reason")
    assert "the whole script" in other.detail
    assert across.answer is Answer.SAME, "another build is asked about its number alone"


def test_a_torch_that_no_agent_can_import_traces_nothing(builds: tuple[Venv, Venv]) -> None:
    with MeasuringProbe(builds[1], builds[0], Journal(), options("time")) as probe:
        assert probe.trace(Repro(PRINTS)) == NOTHING_TRACED
        assert probe.trace(Repro(PRINTS)) == NOTHING_TRACED


#: A torch whose compiler writes one line of generated code, as inductor hands its code to this class.
COMPILES = """
__version__ = {version!r}
import sys, types
class PyCodeCache:
    @classmethod
    def write(cls, source, extra=""):
        return source
for name in ("_inductor", "_inductor.codecache"):
    module = types.ModuleType("torch." + name)
    module.__path__ = []
    sys.modules["torch." + name] = module
    setattr(sys.modules["torch." + name.rpartition(".")[0]] if "." in name else sys.modules[__name__],
            name.rpartition(".")[2], module)
sys.modules["torch._inductor.codecache"].PyCodeCache = PyCodeCache
def compile(model):
    sys.modules["torch._inductor.codecache"].PyCodeCache.write("def call(args):\\n    cpp_fused_{number}(args)\\n")
    return model
"""


def test_the_generated_code_of_both_builds_is_kept(tmp_path: Path) -> None:
    environments = []
    for number in (1, 2):
        (tmp_path / str(number)).mkdir()
        source = COMPILES.format(version=f"2.{number}.0", number=number)
        environments.append(small_torch(tmp_path / str(number), f"2.{number}.0", source))
    journal = Journal(tmp_path / "journal.jsonl")
    with MeasuringProbe(environments[1], environments[0], journal, options("time")) as probe:
        pair = probe.generated_code(Repro("import torch\ntorch.compile(len)\n"))
        assert probe.generated_code(Repro("import torch\n")) is None, "nothing is compiled"
        assert probe.generated_code(Repro("import torch\ntorch.compile(len)\n")) == pair
    assert pair is not None
    assert [kernel_calls(one.code) for one in (pair.reference, pair.asked)] == [("cpp_fused_1",), ("cpp_fused_2",)]


@pytest.mark.parametrize("shared", [True, False])
def test_a_run_that_is_stopped_is_no_evidence(builds: tuple[Venv, Venv], tmp_path: Path, shared: bool) -> None:
    started = tmp_path / "started"
    script = f"import time, torch\nopen({str(started)!r}, 'w').close()\ntime.sleep(300)\n"
    what, journal = options("metric:speed"), Journal(tmp_path / "journal.jsonl")
    runs = measured_runs(builds[0], what)
    probe = MeasuringProbe(builds[1], builds[0], journal, what, reference_runs=runs if shared else None)
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(probe.ask, replace(question(script), limits=Limits()))
        eventually(started.exists)
        probe.close()
        with pytest.raises(RuntimeError, match="closed"):
            asked.result(timeout=20)
    runs.close()
    assert not (tmp_path / "journal.jsonl").exists(), "what a killed run says is kept nowhere"
    with MeasuringProbe(builds[1], builds[0], journal, what) as again:
        assert again.ask(question(PRINTS)).answer is Answer.SAME


FLAGGED = """
import sys, types
__version__ = "2.2.0"
for name in ("_inductor", "_inductor.config"):
    module = sys.modules["torch." + name] = types.ModuleType("torch." + name)
    module.__path__ = []
_inductor = sys.modules["torch._inductor"]
_inductor.config = sys.modules["torch._inductor.config"]
_inductor.config.fast, _inductor.config.safe, _inductor.config.slow = True, True, False
"""
COSTS = """
import sys, torch
config = getattr(torch, "_inductor", None) and torch._inductor.config
print("cost=%s" % (1.0 if config is None or not config.fast else 2.1 if config.slow else 2.0 if config.safe else 1.9))
"""


def test_flags_with_which_a_build_is_not_worse(builds: tuple[Venv, Venv], tmp_path: Path) -> None:
    flags: list[Flag] = [(f"_inductor.config.{name}", name == "slow") for name in ("safe", "fast", "absent", "slow")]
    told: list[int] = []
    journal, repro = Journal(tmp_path / "journal.jsonl"), Repro(COSTS)
    with MeasuringProbe(small_torch(tmp_path, "2.2.0", FLAGGED), builds[0], journal, options("metric:cost")) as probe:
        found = helpful_flags(probe, repro, flags, lambda number, flag: told.append(number))
        lines = (tmp_path / "journal.jsonl").read_text()
        assert helpful_flags(probe, repro, flags, lambda number, flag: None) == found
        assert probe.measurement(repro).ratio == 2.0, "a flag is set for the runs with it alone"
    assert (tmp_path / "journal.jsonl").read_text() == lines
    assert [(one.flag, one.found.ratio) for one in found] == [(("_inductor.config.fast", False), 1.0)]
    assert told == [0, 1, 2, 3]
