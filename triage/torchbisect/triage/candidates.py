"""Run the scripts of one issue or one trace, one after another, until one shows a mismatch."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torchbisect.core.errors import Exit
from torchbisect.pipeline.options import Options
from torchbisect.pipeline.run import Pipeline


def run_first_that_fails(
    candidates: Sequence[Options],
    open_pipeline: Callable[[Options], Pipeline] = Pipeline,
    notify: Callable[[str], None] = lambda text: None,
) -> tuple[Pipeline, int]:
    """Run candidates until one shows a mismatch, and return its run and exit code; else those of the first.

    An issue may hold several blocks of code and a trace several graphs. Only a run tells which of them fails.

    Args:
        candidates: the options of each run; at least one.
        open_pipeline: makes the run of some options.
        notify: is told which script is tried next.
    """
    first: tuple[Pipeline, int] | None = None
    for number, options in enumerate(candidates, 1):
        if number > 1:
            notify(f"{candidates[number - 2].script} shows no mismatch: {options.script} is tried")
        pipeline = open_pipeline(options)
        code = pipeline.execute()
        decided = code == Exit.INTERRUPTED or pipeline.report.verdict not in ("none", "untestable")
        if decided or len(candidates) == 1:
            return pipeline, code
        first = first or (pipeline, code)
    if first is None:
        raise ValueError("there is no candidate")
    # The last run has overwritten the report of the first, which tells more.
    pipeline = open_pipeline(candidates[0])
    return pipeline, pipeline.execute()
