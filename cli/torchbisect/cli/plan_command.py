"""The ``--plan`` option: print the cost of a search, and do nothing else."""

from __future__ import annotations

import json
from dataclasses import asdict

import click

from torchbisect.core.build import Channel
from torchbisect.core.errors import Exit
from torchbisect.pipeline.local_provider import LocalProvider
from torchbisect.pipeline.options import Options
from torchbisect.pipeline.progress import Display
from torchbisect.pipeline.script_input import read_script
from torchbisect.pipeline.search_plan import plan_searches


def show_plan(options: Options) -> int:
    """Print the steps, the downloads and the disk space that the search takes, and return the exit code.

    Raises:
        InputError: an option can't be used.
        IndexUnreachable: the list of builds can't be read.
    """
    if options.script is not None:
        read_script(options.script)
    provider = LocalProvider(options, Display(options.verbosity))
    try:
        plans = plan_searches(options, provider.sources)
    finally:
        provider.close()
    if options.as_json:
        click.echo(json.dumps({str(channel): asdict(plan) for channel, plan in plans.items()}, indent=2))
        return Exit.FINISHED
    first, *_ = plans
    click.echo(f"{first}s, {plans[first].summary}")
    if len(plans) > 1:
        summary = plans[Channel.NIGHTLY].summary
        click.echo(f"then for each boundary the nightlies between two releases, at the widest {summary}")
    return Exit.FINISHED
