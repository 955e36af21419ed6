"""Atomic writing of a report's files, and reading."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from torchbisect.core.errors import InputError
from torchbisect.reports.files import load, write
from torchbisect.reports.model.report import Report
from torchbisect.reports.scrubbed import scrubbed


def test_written_and_read_back(whole: Report, tmp_path: Path) -> None:
    directory = tmp_path / "a" / "out"
    written = write(whole, directory)
    assert sorted(path.name for path in written) == sorted(os.listdir(directory))
    assert load(directory) == load(directory / "report.json") == scrubbed(whole)
    assert (directory / "minimal.py").read_text() == whole.minimal.source  # type: ignore[union-attr]
    assert (directory / "report.md").read_text().startswith("<!-- torchbisect:report -->\n")


def test_written_again(whole: Report, tmp_path: Path) -> None:
    write(whole, tmp_path)
    later = replace(whole, state="partial", minimal=None)
    assert "minimal.py" not in [path.name for path in write(later, tmp_path)]
    assert load(tmp_path) == scrubbed(later)


def test_files_can_be_read_by_others(whole: Report, tmp_path: Path) -> None:
    mask = os.umask(0o022)
    try:
        for path in write(whole, tmp_path):
            assert path.stat().st_mode & 0o777 == 0o644
    finally:
        os.umask(mask)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is not a torchbisect report"),
        (b"{", "is not a torchbisect report"),
        (b"\xff\xfe", "is not a torchbisect report"),
        (b"[" * 100_000, "is not a torchbisect report"),
        (b"[]", "has no schema number"),
        (b'{"schema": 1}', "lacks 'state'"),
        (b'{"schema": 99}', "use the newer torchbisect"),
    ],
)
def test_broken_reports_are_named(tmp_path: Path, content: bytes, words: str) -> None:
    (tmp_path / "report.json").write_bytes(content)
    with pytest.raises(InputError, match=words) as caught:
        load(tmp_path)
    assert "report.json" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "report.json").open("wb") as file:
        file.truncate(2**40)
    with pytest.raises(InputError, match="more than 67 MB, which is the limit"):
        load(tmp_path)


def test_a_missing_report_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"there is no report\.json"):
        load(tmp_path)
    with pytest.raises(InputError, match=r"there is no report\.json"):
        load(tmp_path / "nothing")


def test_a_file_where_the_directory_should_be(whole: Report, tmp_path: Path) -> None:
    place = tmp_path / "out"
    place.write_text("mine")
    with pytest.raises(InputError, match="is not a directory"):
        write(whole, place)
    assert place.read_text() == "mine"


FILL = """
import sys
from dataclasses import replace
from pathlib import Path
from torchbisect.core.errors import DiskFull
from torchbisect.reports.files import load, write
report = load(Path(sys.argv[1]))
try:
    write(replace(report, reason="x" * 3_000_000), Path(sys.argv[1]))
except DiskFull as error:
    print(error)
    raise SystemExit(3)
"""


@pytest.mark.slow
@pytest.mark.skipif(not os.path.isdir("/dev/shm") or os.geteuid() != 0, reason="mounting a small disk needs root")
def test_a_full_disk_leaves_the_old_files(whole: Report, tmp_path: Path) -> None:
    """On a real filesystem of one megabyte, in a mount namespace of its own."""
    script = f"""
mount -t tmpfs -o size=1m none {tmp_path} || exit 77
cp {tmp_path}.json {tmp_path}/report.json
{sys.executable} -c '{FILL}' {tmp_path}; status=$?
ls -A {tmp_path}; cmp {tmp_path}.json {tmp_path}/report.json || exit 9
exit $status
"""
    Path(f"{tmp_path}.json").write_text(json.dumps(whole.to_json()))
    done = subprocess.run(["unshare", "--mount", "sh", "-c", script], capture_output=True, text=True, check=False)
    if done.returncode in (77, 1):
        pytest.skip(f"no mount namespace here: {done.stderr.strip()}")
    assert done.returncode == 3, done.stderr
    assert "no room in" in done.stdout
    assert ".tmp" not in done.stdout
