"""The ``verify`` command: what a patch of PyTorch does to a bug, as a table or as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import click

from torchbisect.cli.inspect_commands import print_table
from torchbisect.core.errors import Exit, InputError
from torchbisect.core.printable import shown_line
from torchbisect.core.scrub import scrub
from torchbisect.pipeline.options import Options
from torchbisect.pipeline.verify import verify
from torchbisect.reports.sanitize import without_machine_paths

#: The most files that are named on the terminal; ``--json`` has them all.
_MOST_LISTED = 12


def verify_patch(options: Options, patch: str | None, *, revert: bool, also: Sequence[Path]) -> Exit:
    """Show the effect of a patch, and return the exit code.

    Raises:
        InputError: a script or the patch can't be used.
        MachineError: this machine can't do its part.
    """
    if not patch:
        raise InputError("name the change with --patch: a file with a diff, a commit, or a pull request (#161036)")
    found = verify(options, patch, reverted=revert, also=also)
    if options.as_json:
        click.echo(scrub(json.dumps(found.to_json(), indent=2)))
    else:
        if found.scripts:
            patched = "reverted" if found.reverted else "with the patch"
            rows = [(one.script, one.without, one.patched, str(one.effect)) for one in found.scripts]
            print_table([("script", "without", patched, "effect"), *(tuple(map(_shown, row)) for row in rows)])
            click.echo(_shown(f"{'taken back from' if found.reverted else 'applied to'}: {_listed(found.files)}"))
            if found.left_out:
                click.echo(_shown(f"left out, as no installation has it: {_listed(found.left_out)}"))
        click.echo(_shown(found.sentence))
    return found.exit_code


def _listed(files: Sequence[str]) -> str:
    more = len(files) - _MOST_LISTED
    return ", ".join(files[:_MOST_LISTED]) + (f" and {more} more" if more > 0 else "")


def _shown(text: str) -> str:
    return scrub(without_machine_paths(shown_line(text)))
