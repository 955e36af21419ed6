"""Check one call in this process, and report on it as on a script."""

from __future__ import annotations

import copy
import inspect
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from torchbisect.api.check_options import CheckOptions
from torchbisect.api.in_process import compare_runs, hooked_compiler, recording
from torchbisect.api.judged import Judged, judge, shows
from torchbisect.api.script.call_script import CallScript, write_call
from torchbisect.api.script.definitions import NotWritable
from torchbisect.api.script.recorded_call import RecordedCall
from torchbisect.containers.environment import Facts
from torchbisect.core.build import Build, Channel
from torchbisect.core.errors import InputError
from torchbisect.core.repro import Repro
from torchbisect.pipeline.options import Options
from torchbisect.pipeline.report_builder import ReportBuilder
from torchbisect.pipeline.stages.observe import Observed
from torchbisect.probe.agent.run.fork import Run
from torchbisect.probe.agent.server import environment_facts
from torchbisect.probe.judge.classify import Mismatch
from torchbisect.reports import files
from torchbisect.reports.model.report import Report
from torchbisect.reports.scrubbed import scrubbed


@dataclass(frozen=True)
class CheckedCall:
    """The report on a call, and the path of its script if it has one."""

    report: Report
    script: Path | None


def checked_call(function: Any, args: Any, kwargs: Any, options: CheckOptions) -> CheckedCall:
    """Run a call compiled and uncompiled, and report. Raises ``InputError`` if it can't be made."""
    call = _Call(function, args, kwargs, options)
    with hooked_compiler():
        judged = judge(compare_runs(call.run, call.source), call.source)
        written, why = call.script(judged.mismatch) if judged.mismatch is not None else (None, "")
    path = None if written is None else written.save(options.folder)
    report = _report(options, written, judged, why)
    files.write(report, options.folder)
    return CheckedCall(report, path)


class _Call:
    def __init__(self, function: Any, args: Any, kwargs: Any, options: CheckOptions) -> None:
        if hasattr(function, "_torchdynamo_orig_callable") or hasattr(function, "_orig_mod"):
            raise InputError("check takes what is not compiled yet, and its options as CheckOptions(compile={...})")
        self._made = (function, args, kwargs)
        self._options = options
        target = type(function) if isinstance(function, torch.nn.Module) else function
        self._folders = [str(Path(inspect.getsourcefile(target) or "").parent)] if _has_source(target) else []
        self.source = inspect.getsource(inspect.getmodule(target) or target) if _has_source(target) else ""

    def run(self, role: str) -> Run:
        """Make the call once, with copies of its arguments."""
        function, args, kwargs = self._copied()
        # As in a process of its own: what was compiled for earlier calls decides how this one is compiled.
        torch._dynamo.reset()
        with recording(role, self._folders, self._options.seed) as made, made.mode():
            try:
                output = torch.compile(function, **self._options.compile)(*args, **kwargs)
                if self._options.backward:
                    _run_backward(output)
            except Exception as error:
                made.error = error
        assert made.run is not None
        return made.run

    def script(self, mismatch: Mismatch) -> tuple[CallScript | None, str]:
        """Return the call as a script that shows the mismatch; or ``None``, and the reason."""
        function, args, kwargs = self._copied()
        backward = mismatch.place.startswith("backward") or mismatch.kind == "gradients"
        call = RecordedCall(0, function, args, kwargs, dict(self._options.compile))
        try:
            script = write_call(call, seed=self._options.seed, backward=backward, title=mismatch.summary)
        except NotWritable as error:
            return None, f"the call can't be written as a script: {error}"
        if not shows(script, mismatch, self._options.seed):
            return None, "the call as a script shows another result, so none is left"
        return script, ""

    def _copied(self) -> Any:
        try:
            return copy.deepcopy(self._made)
        except Exception as error:
            raise InputError(f"an argument can't be copied for the two runs: {error}") from error


def _has_source(target: Any) -> bool:
    try:
        return bool(inspect.getsourcefile(target) and inspect.getsource(inspect.getmodule(target) or target))
    except (OSError, TypeError):
        return False


def _run_backward(output: Any) -> None:
    leaves = torch.utils._pytree.tree_flatten(output)[0]
    wanted = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
    if wanted:
        torch.autograd.backward([leaf.sum() for leaf in wanted])


def _report(options: CheckOptions, script: CallScript | None, judged: Judged, why: str) -> Report:
    facts = Facts(**environment_facts())
    name = "repro.py"
    builder = ReportBuilder(
        Options(options.folder / name, torch="installed", seed=options.seed, out=options.folder, command="check"),
        Repro(script.source if script is not None else "", seed=options.seed, name=name),
    )
    builder.set_environment(Build(facts.torch, channel=Channel.INSTALLED), facts)
    builder.set_observed(_observed(judged))
    for line in (*judged.observation.notes, *filter(None, [why])):
        builder.add_notice(line)
    report = scrubbed(builder.report())
    return report if script is not None else replace(report, original=None)


def _observed(judged: Judged) -> Observed:
    if judged.untestable is not None:
        return Observed("untestable", reason=judged.untestable.detail)
    if judged.mismatch is None:
        return Observed("none", reason="compiled agrees with eager", runs=1)
    return Observed("mismatch", mismatch=judged.mismatch, runs=1, shown=1)
