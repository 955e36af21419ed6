"""Numbers, scripts and folders that can't be used: each is one clear line, with the exit code of its kind."""

from __future__ import annotations

import codecs
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from torchbisect.cli.commands import main
from torchbisect.containers.store.disk import parse_size
from torchbisect.minimizer.budget import Budget
from torchbisect.pipeline.script import read_script

pytestmark = pytest.mark.long


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "repro.py").write_text("print(1)\n")
    return tmp_path


def typed(*words: str) -> Result:
    return CliRunner().invoke(main, list(words))


def line_of(result: Result, code: int) -> str:
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    line = result.output.splitlines()[-1]
    assert line.isprintable()
    return line


_NUMBERS = ("--timeout", "--max-compile-time", "--slower-than", "--max-recompiles", "--max-graph-breaks", "--jobs",
            "--repeat", "--seed", "--budget", "--cache-limit")  # fmt: skip
_VALUES = ("nan", "inf", "-inf", "1e400", "-1e400", "9" * 400, "9" * 5000, "-" + "9" * 5000, "0x10", "", " ", "1e",
           "\x1b[31m", "١٢٣", "1\n2")  # fmt: skip


@pytest.mark.parametrize("option", _NUMBERS)
def test_a_number_that_is_none(folder: Path, option: str) -> None:
    for value in _VALUES:
        # Python reads the digits of every script as a number.
        if value != "١٢٣" or option in ("--budget", "--cache-limit"):
            assert option in line_of(typed("check", "repro.py", option, value), 2)


@pytest.mark.parametrize("value", ["nan", "inf", "-1", "1e400"])
def test_a_number_of_a_triage(folder: Path, value: str) -> None:
    for option in ("--gpus", "--workers", "--most"):
        assert option in line_of(typed("triage", "repro.py", option, value), 2)


@pytest.mark.parametrize("text", ["9" * 400 + "GB", "inf GB", "nan", "٣GB", "0.0001", "1e9"])
def test_a_size_that_is_none(text: str) -> None:
    with pytest.raises(ValueError):
        parse_size(text)


@pytest.mark.parametrize("text", ["9" * 400 + "s", "9" * 5000 + "q", "99999999999999q", "0.0s"])
def test_a_budget_that_is_none(text: str) -> None:
    with pytest.raises(ValueError):
        Budget.parsed(text)


SCRIPTS = {
    "nul": (b"a = 1\nb = '\0'\n", "line 2: a NUL byte"),
    "nul-first": (b"\0", "line 1: a NUL byte"),
    "utf-16": (codecs.BOM_UTF16_LE + "print(1)".encode("utf-16-le"), "UTF-16"),
    "utf-16-be": (codecs.BOM_UTF16_BE + "print(1)".encode("utf-16-be"), "UTF-16"),
    "utf-32": (codecs.BOM_UTF32_LE + "print(1)".encode("utf-32-le"), "UTF-16"),
    "latin": ("# é\n".encode("latin-1"), "is not text that Python can read"),
    "unknown-coding": (b"# coding: klingon\n", "is not text that Python can read"),
    "codec-of-bytes": (b"# coding: base64\nabc\n", "can't be parsed|is not text|invalid"),
    "rot13": (b"# coding: rot13\nprint\n", "is not text|invalid"),
    "empty": (b"", "is empty"),
    "spaces": (b" \n\t\n", "is empty"),
    "large": (b"#" * 100_000_000, "more than 2 MB"),
    "deep": (b"(" * 5000 + b")" * 5000, "line 1|too deep"),
    "deep-minus": (b"-" * 100_000 + b"1", "too deep|line 1"),
    "deep-attributes": (b"a" + b".b" * 100_000, "too deep|line 1"),
    "digits": (b"a = " + b"9" * 5000, "line 1|digits"),
    "escape": (b"a = \x1b[31m\n", "line 1"),
}


@pytest.mark.parametrize(("data", "said"), SCRIPTS.values(), ids=SCRIPTS)
def test_a_script_that_is_none(folder: Path, data: bytes, said: str) -> None:
    (folder / "bad.py").write_bytes(data)
    line = line_of(typed("check", "bad.py"), 2)
    assert "bad.py" in line.split()[1]
    assert "None" not in line
    assert any(part in line for part in said.split("|")), line


def test_files_that_are_no_files(folder: Path) -> None:
    os.mkfifo(folder / "fifo.py")
    server = socket.socket(socket.AF_UNIX)
    server.bind("socket.py")
    (folder / "folder.py").mkdir()
    (folder / "loop.py").symlink_to("loop.py")
    started = time.monotonic()
    for name in (
        "fifo.py",
        "socket.py",
        "folder.py",
        "loop.py",
        "/dev/zero",
        "/dev/tty",
        "/dev/null",
        "x" * 5000,
    ):
        line = line_of(typed("check", name), 2)
        assert "None" not in line
    server.close()
    assert time.monotonic() - started < 10


def test_a_good_script_in_another_encoding(folder: Path) -> None:
    (folder / "latin.py").write_bytes("# coding: latin-1\r\na = 'é'\r\n".encode("latin-1"))
    (folder / "bom.py").write_bytes(codecs.BOM_UTF8 + "a = 'é'\n".encode())
    assert read_script(folder / "latin.py") == "# coding: latin-1\na = 'é'\n"
    assert read_script(folder / "bom.py") == "a = 'é'\n"


@pytest.mark.parametrize(
    "name", ["\x1b[2Jx.py", "a\nb.py", "a\rtorchbisect: fine", "\u202ex.py", "\udcff.py", "[red]x.py"]
)
def test_a_name_does_not_reach_the_terminal(folder: Path, name: str) -> None:
    for words in (["check", name], ["report", name], ["issue", "--file", name], ["triage", name],
                  ["check", "repro.py", name],
                  ["check", "repro.py", "--torch", name], ["check", "repro.py", f"--{name}"], [name],
                  ["check", "repro.py", "--python", name], ["cache", "--cache-dir", f"/dev/null/{name}"]):  # fmt: skip
        result = typed(*words)
        assert result.exit_code in (2, 5, 6)
        assert all(line.isprintable() for line in result.output.splitlines())
        assert "\x1b" not in result.output
        assert not [line for line in result.output.splitlines() if line.startswith("torchbisect: fine")]


def test_out_is_a_file(folder: Path) -> None:
    for place in ("repro.py", "repro.py/below", "/dev/null", "/dev/null/below"):
        line = line_of(typed("check", "repro.py", "--out", place), 2)
        assert "--out" in line
        assert "--cache-dir" not in line


@pytest.mark.skipif(os.geteuid() != 0, reason="a filesystem is mounted")
def test_out_is_full_or_read_only(folder: Path) -> None:
    for options, code in (("size=4k", 5), ("ro", 2)):
        place = folder / options.partition("=")[0]
        place.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)], check=False).returncode:
            pytest.skip("no filesystem can be mounted here")
        try:
            if code == 5:
                (place / "filler").write_bytes(b"x" * 4096)
            line = line_of(typed("check", "repro.py", "--out", str(place / "out")), code)
        finally:
            subprocess.run(["umount", str(place)], check=True)
        assert "--out" in line
        assert "--cache-dir" not in line


def test_no_line_of_a_script_is_shown_by_a_warning_of_the_parser(folder: Path) -> None:
    (folder / "repro.py").write_text("x = '\x1b[31m' if 1else 2\n")
    command = [sys.executable, "-m", "torchbisect", "check", "repro.py", "--python", "/no-such-python"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "torchbisect: there is no Python at /no-such-python: name one with --python\n"
