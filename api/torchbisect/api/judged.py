"""Judge a comparison that was made in this process, by the rules for a run of a script."""

from __future__ import annotations

import sys
import tempfile
import types
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torchbisect.api.in_process import compare_runs, recording
from torchbisect.api.script.call_script import CallScript
from torchbisect.probe.agent.run.fork import Run
from torchbisect.probe.judge.classify import Mismatch, agreement, find_mismatch, find_untestable
from torchbisect.probe.judge.environment_faults import Untestable
from torchbisect.probe.judge.matching import Strictness
from torchbisect.probe.judge.observation import Observation


@dataclass(frozen=True)
class Judged:
    """The verdict on a comparison: a mismatch, a reason why it is no evidence, or neither if compiled agrees."""

    observation: Observation
    mismatch: Mismatch | None = None
    untestable: Untestable | None = None


def judge(observed: dict[str, Any], source: str) -> Judged:
    """Return the verdict on ``observation.Observation`` as JSON."""
    observation = Observation.from_json(observed)
    untestable = find_untestable(observation)
    if untestable is not None and agreement(observation, untestable, source) is None:
        return Judged(observation, untestable=untestable)
    return Judged(observation, find_mismatch(observation, source))


def shows(script: CallScript, mismatch: Mismatch, seed: int = 0) -> bool:
    """Return True if a script shows a mismatch by itself in this process."""
    with tempfile.TemporaryDirectory(prefix="torchbisect-repro-") as folder:
        path = script.save(Path(folder))
        code = compile(script.source, str(path), "exec", dont_inherit=True)

        def run(role: str) -> Run:
            module = types.ModuleType("torchbisect_repro")
            module.__file__ = str(path)
            sys.modules[module.__name__] = module
            with recording(role, [folder], seed) as made:
                try:
                    with made.mode():
                        exec(code, module.__dict__)
                except Exception as error:
                    made.error = error
            assert made.run is not None
            return made.run

        try:
            found = judge(compare_runs(run, script.source), script.source).mismatch
        finally:
            sys.modules.pop("torchbisect_repro", None)
    return found is not None and found.includes(mismatch.signature, Strictness.TOLERANT)
