"""The entry of the ``torchbisect`` command; it imports little, so that the failure of an import has its exit code."""

from __future__ import annotations

from typing import Any, NoReturn

from torchbisect.core.command_line import run_command


def main() -> NoReturn:
    """Run the command that was typed, and end this process."""
    run_command(_commands)


def _commands() -> Any:
    from torchbisect.cli.commands import main as commands

    return commands


if __name__ == "__main__":
    main()
