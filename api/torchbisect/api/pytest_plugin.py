"""The pytest plugin: with ``--torchbisect`` each test that compiles something is compared with its eager run.

pytest imports this module in every run, so that its option is known. Torch is imported with the option only.
"""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("torchbisect", "compare torch.compile with eager")
    group.addoption(
        "--torchbisect",
        action="store_true",
        help="Run each test that calls compiled code without compiling too, and fail it where the two differ.",
    )
    group.addoption(
        "--torchbisect-out",
        metavar="DIR",
        default="torchbisect-pytest",
        help="The folder for the scripts of the mismatches; by default torchbisect-pytest.",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Turn the comparison on, if it was asked for."""
    if config.getoption("--torchbisect"):
        from torchbisect.api.compared_tests import ComparedTests

        config.pluginmanager.register(ComparedTests(config), "torchbisect-comparison")
