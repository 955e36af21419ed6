"""The environments that a run leases, where torch can't be imported."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from installed_torch import BROKEN, VERSION, install_torch

from torchbisect.core.build import Build, Channel
from torchbisect.core.errors import InstallFailed, TorchbisectError
from torchbisect.pipeline.local_provider import LocalProvider
from torchbisect.pipeline.options import Options
from torchbisect.pipeline.progress import Display
from torchbisect.probe.agent_client import AgentFailed
from torchbisect.probe.journal import Journal


@pytest.mark.parametrize(
    ("options", "error"), [({}, AgentFailed), ({"test": "false"}, InstallFailed), ({"measure": "time"}, InstallFailed)]
)
def test_an_installed_torch_that_cannot_be_imported_answers_nothing(
    options: dict[str, Any], error: type[TorchbisectError], tmp_path: Path
) -> None:
    """Neither does a test, which would fail for that whatever it asks."""
    python = install_torch(tmp_path / "python", BROKEN)
    asked = Options(Path("repro.py"), python=python, cache_dir=tmp_path / "cache", out=tmp_path / "out", **options)
    provider = LocalProvider(asked, Display(stream=io.StringIO()))
    try:
        with (
            pytest.raises(error, match="libcudnn"),
            provider.environment(Build(VERSION, Channel.INSTALLED)) as environment,
            provider.oracle(environment, Journal(), print) as oracle,
        ):
            oracle.start()
    finally:
        provider.close()
