"""Run a script once: the child's side of a fork, which ends with the run."""

from __future__ import annotations

import atexit
import builtins
import contextlib
import importlib
import os
import sys
import threading
import traceback
from typing import Any, Callable, Dict, List, NamedTuple, Tuple

from ..capture import exceptions
from ..capture.recording import Recorder, came_out_of_call
from ..capture.tape import Tape
from ..trace.tracing import Tracer
from . import child_setup, compile_metrics
from .compile_hook import CompileHook, watch_autograd, watch_hooks
from .eager_modes import MODES
from .export_hook import ExportHook
from .script_backends import silence_backends
from .tools import TOOLS
from .workplace import Place

_exit = os._exit
MAX_CALL_SECONDS = 200  # calls whose wall time is recorded
AGENT_FAILED = 70  # EX_SOFTWARE of sysexits.h


class Job(NamedTuple):
    """The task of a child.

    Attributes:
        role: ``compiled``, or an eager run: ``eager``; ``trace``; ``perturbed``, with everything changed that may
            differ between two correct runs; ``float64``, ``reversed_ties`` or ``deterministic_rng``, in a mode of
            ``eager_modes``. ``deterministic_rng-compiled`` is compiled in such a mode. Or one of ``tools.TOOLS``.
        repro: ``repro.Repro`` as JSON.
        place: the paths of the run.
        settings: ``repro.Settings`` as JSON.
        scratch: a folder for this child alone.
        caches: the folder for the caches of inductor and triton.
        limits: ``fork.RunLimits``.
    """

    role: str
    repro: Dict[str, Any]
    place: Place
    settings: Dict[str, Any]
    scratch: str
    caches: str
    limits: Any


def run_child(job: Job, tape: Tape) -> None:
    """Run the script to its end and exit the process. This function never returns."""
    status = AGENT_FAILED
    try:
        status = _run_tool(job, tape) if job.role in TOOLS else _run_job(job, tape)
    except BaseException as error:
        with contextlib.suppress(BaseException):
            tape.append({"e": "broken", "raised": exceptions.exception_to_json(error, _any_frame)})
    finally:
        _exit(status)


def _any_frame(file: str, function: str, line: int) -> Dict[str, Any]:
    return {"file": os.path.basename(file), "function": function, "line": line, "where": "library"}


def _run_tool(job: Job, tape: Tape) -> int:
    """Run one of torch's own tools on the script and record its answer; return the exit status."""
    path, _, _ = _prepare(job)
    tape.append({"e": "tool", "answer": TOOLS[job.role](path, int(job.repro.get("seed", 0)))})
    return 0


def _prepare(job: Job) -> Tuple[str, List[str], List[int]]:
    """Prepare the process; return the script's path, the folders of user code, and a list that grows with each read."""
    child_setup.set_limits(job.limits.memory, job.limits.open_files)
    path, folders = job.place.script, job.place.folders
    child_setup.enter_folder(job.place.cwd, job.place.search, job.place.paths)
    child_setup.set_environment(job.scratch, job.caches, job.limits.threads)
    os.environ.update(job.place.variables)
    stdin_reads = child_setup.open_streams(job.place.typed_input)
    sys.argv = [job.place.argv0, *job.repro.get("arguments", ())]
    child_setup.discard_inherited_state()
    return path, folders, stdin_reads


def _run_job(job: Job, tape: Tape) -> int:
    """Prepare the process, run the script and record its end; return the exit status."""
    path, folders, stdin_reads = _prepare(job)
    classifier = exceptions.FrameClassifier(folders, [job.caches])
    recorder = Recorder(tape, folders, classifier.frame)
    hook = CompileHook(recorder, job.settings, compiles=job.role.endswith("compiled"))
    hook.install()
    silence_backends(lambda: "custom" in hook.backends)
    ExportHook(recorder, hook, job.role.endswith("compiled"), job.settings.get("backend")).install()
    watch_autograd(recorder)
    watch_hooks(recorder)
    if job.role == "perturbed":
        child_setup.perturb_process()
    child_setup.seed_generators(int(job.repro.get("seed", 0)))
    namespace = child_setup.create_main_module(path, job.place.module)
    process = os.getpid()
    mode = MODES.get(job.role.partition("-")[0], contextlib.nullcontext)()
    source = job.repro["source"]
    private = (folders[-1], job.scratch)
    tracer = recorder.tracer = Tracer(path, source, namespace, private) if job.role == "trace" else None

    def finish(ending: Dict[str, Any]) -> None:
        ending.update(compiled=len(recorder.compiled_sites) + hook.unwrapped, waited_for_input=bool(stdin_reads))
        ending.update(compile_metrics.collect(), call_seconds=recorder.call_seconds[:MAX_CALL_SECONDS])
        ending.update(notes=hook.notes, backends=sorted(hook.backends))
        if tracer is not None:
            tape.append({"e": "trace", "trace": tracer.result()})
        recorder.finish(ending, namespace)

    _record_before_exit(process, finish)
    with_tracer = tracer if tracer is not None else contextlib.nullcontext()
    code = tracer.tree if tracer is not None else source
    ending = _run_script(path, code, namespace, classifier, (mode, with_tracer))
    if os.getpid() != process:  # the script forked, and this is its child
        return int(ending.get("status") or 0)
    finish(ending)
    _shut_down()
    tape.append({"e": "closed"})
    return 0


def _run_script(
    path: str, source: Any, namespace: Dict[str, Any], classifier: exceptions.FrameClassifier, contexts: Tuple[Any, Any]
) -> Dict[str, Any]:
    """Run the script in two contexts and return its ending, in the form that ``observation.Ending`` reads."""
    try:
        code = compile(source, path, "exec", dont_inherit=True)
        with contexts[0], contexts[1]:
            _execute(code, namespace)
    except SystemExit as leaving:
        status = _exit_status(leaving.code)
        return {"how": "exited", "status": status, "raised_in_call": came_out_of_call(leaving)}
    except BaseException as error:
        _write_to_stderr("".join(traceback.format_exception(type(error), error, _own_traceback(error))))
        how = "out-of-memory" if exceptions.is_out_of_memory(error) else "raised"
        raised = exceptions.exception_to_json(error, classifier.frame)
        return {"how": how, "raised": raised, "raised_in_call": came_out_of_call(error)}
    return {"how": "finished"}


def _own_traceback(error: BaseException) -> Any:
    """Return an exception's traceback from the script's first frame on, as Python shows it."""
    found = error.__traceback__
    while found is not None and found.tb_frame.f_code.co_filename.startswith("<torchbisect "):
        found = found.tb_next
    return found or error.__traceback__


def _execute(code: Any, namespace: Dict[str, Any]) -> None:
    """Execute the script's code, and restore the builtins afterwards."""
    held = dict(vars(builtins))
    try:
        if namespace["__package__"]:
            importlib.import_module(namespace["__package__"])
        exec(code, namespace)
    finally:
        vars(builtins).update(held)


def _exit_status(code: Any) -> int:
    """Return the exit status of Python for an argument of ``sys.exit``."""
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xFF
    _write_to_stderr("{}\n".format(code))
    return 1


def _write_to_stderr(text: str) -> None:
    """Write to descriptor 2, because the script may have replaced ``sys.stderr``."""
    with contextlib.suppress(OSError):
        os.write(2, text.encode("utf-8", "backslashreplace")[-(64 << 10) :])


def _record_before_exit(process: int, finish: Callable[[Dict[str, Any]], None]) -> None:
    """Replace ``os._exit`` so that the script's globals are recorded before the process ends."""

    def record_and_exit(status: int) -> None:
        if os.getpid() == process:
            with contextlib.suppress(BaseException):
                finish({"how": "exited", "status": int(status) & 0xFF})
        _exit(status)

    os._exit = record_and_exit  # type: ignore[assignment]


def _shut_down() -> None:
    """Do what Python does after a script: wait for its threads, run its exit handlers, flush its streams."""
    for step in (threading._shutdown, atexit._run_exitfuncs):  # type: ignore[attr-defined]
        with contextlib.suppress(Exception, SystemExit):
            step()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(BaseException):
            stream.flush()
