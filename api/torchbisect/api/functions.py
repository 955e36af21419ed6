"""Functions that compare a callable with its compiled self, shrink what differs, and search builds."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from torchbisect.api.check_options import CheckOptions
from torchbisect.pipeline.options import Options, check_options
from torchbisect.pipeline.progress import Display
from torchbisect.pipeline.run import Pipeline
from torchbisect.reports.model.report import Report

if TYPE_CHECKING:
    import torch


def check(function: Callable[..., Any], *args: Any, torchbisect: CheckOptions | None = None, **kwargs: Any) -> Report:
    """Run a function compiled and uncompiled in this process, and return what differs.

    The arguments are copied for each run, and stay as they are. What the function changes elsewhere, in a global say,
    it changes in each run. The verdict of the report is ``mismatch``, ``none`` or ``untestable``. With a mismatch its
    folder has ``repro.py``, which ``torchbisect run`` takes, unless the call can't be written; a notice says why.

    Args:
        function: the function, not compiled yet.
        args, kwargs: its arguments.
        torchbisect: how it is compiled, and where the results go.
    """
    from torchbisect.api.checked_call import checked_call

    return checked_call(function, args, kwargs, torchbisect or CheckOptions()).report


def check_module(module: torch.nn.Module, *args: Any, torchbisect: CheckOptions | None = None, **kwargs: Any) -> Report:
    """Run a module compiled and uncompiled, as ``check`` does a function; the module is copied for each run too."""
    return check(module, *args, torchbisect=torchbisect, **kwargs)


def minimize(
    function: Callable[..., Any], *args: Any, torchbisect: CheckOptions | None = None, **kwargs: Any
) -> Report:
    """Check a call, and shrink its script if there is a mismatch. Processes of their own run the script."""
    return _run("minimize", function, args, kwargs, torchbisect or CheckOptions())


def bisect(function: Callable[..., Any], *args: Any, torchbisect: CheckOptions | None = None, **kwargs: Any) -> Report:
    """Check a call, and if there is a mismatch shrink its script and find the builds where it broke and was fixed."""
    return _run("run", function, args, kwargs, torchbisect or CheckOptions())


def _run(command: str, function: Any, args: Any, kwargs: Any, options: CheckOptions) -> Report:
    from torchbisect.api.checked_call import checked_call

    checked = checked_call(function, args, kwargs, options)
    if checked.script is None:
        return checked.report
    wanted = check_options(
        Options(
            checked.script, command=command, out=options.folder, torch="installed", seed=options.seed, **options.run
        )
    )
    pipeline = Pipeline(wanted, Display(wanted.verbosity))
    pipeline.execute()
    return pipeline.report
