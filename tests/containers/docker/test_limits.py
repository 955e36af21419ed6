"""Container options and exit codes, and the error without an engine; no engine is needed here."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchbisect.containers.docker.container_processes import Confinement, signal_status
from torchbisect.containers.docker.engine import Engine
from torchbisect.containers.docker.volume import archive
from torchbisect.core.errors import MachineError


def test_without_an_engine_the_error_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is run: a stranger's script does not run on this machine because an engine is down."""
    for address in (f"unix://{tmp_path}/none.sock", "tcp://127.0.0.1:9", "nonsense://x"):
        monkeypatch.setenv("DOCKER_HOST", address)
        with pytest.raises(MachineError, match="dockerd") as caught:
            Engine()
        assert "--sandbox venv" in str(caught.value)
        assert "\n" not in str(caught.value)
        assert caught.value.exit_code == 5


@given(st.integers(0, 255))
def test_exit_codes_become_statuses_of_host_processes(code: int) -> None:
    status = signal_status(code)
    assert status == code or (status < 0 and 128 - status == code)
    assert signal_status(137) == -9


@given(
    st.builds(
        Confinement,
        memory=st.integers(1 << 26, 1 << 36),
        scratch=st.integers(1 << 20, 1 << 33),
        processes=st.integers(1, 4096),
        gpu=st.none() | st.just("0"),
    )
)
def test_every_combination_of_limits_keeps_the_isolation(confinement: Confinement) -> None:
    options = confinement.options()
    assert options["network_mode"] == "none"
    assert options["read_only"] is True
    assert options["cap_drop"] == ["ALL"]
    assert options["security_opt"] == ["no-new-privileges:true"]
    assert options["user"] == "65534:65534"
    assert options["memswap_limit"] == options["mem_limit"] == confinement.memory
    assert options["pids_limit"] == confinement.processes
    assert set(options["tmpfs"]) == {"/tmp"}
    assert "privileged" not in options
    assert ("device_requests" in options) is (confinement.gpu is not None)


@given(st.dictionaries(st.text("abc", min_size=1, max_size=5), st.binary(max_size=50), max_size=4))
def test_files_are_packed_completely(files: dict[str, bytes]) -> None:
    with tarfile.open(fileobj=io.BytesIO(archive(files))) as packed:
        found = {entry.name: packed.extractfile(entry) for entry in packed}
        assert {name: file.read() for name, file in found.items() if file} == files
