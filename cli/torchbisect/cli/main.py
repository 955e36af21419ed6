"""The ``torchbisect`` command."""

from __future__ import annotations

import click


@click.group()
def main() -> None:
    """Shrink a script that goes wrong under torch.compile and find the build where it broke."""
