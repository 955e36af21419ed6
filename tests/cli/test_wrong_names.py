"""Values of options and names of scripts that can't be: one line each, before anything is started."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from torchbisect.cli.commands import main

LONG = "x" * 10_000
SCRIPT = "import torch\nprint(torch.compile(lambda x: x + 1)(torch.ones(1)))\n"
TESTS = "import pytest\n\n\ndef test_one():\n    pass\n\n\nclass TestTwo:\n    def test_a(self):\n        pass\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    monkeypatch.setenv("TORCHBISECT_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "ok.py").write_text(SCRIPT)
    (tmp_path / "test_ok.py").write_text(TESTS)
    (tmp_path / "notests").mkdir()
    (tmp_path / "notests" / "help.txt").write_text("none")
    return tmp_path


DOCKER = ("--sandbox", "docker")
CASES = [
    # Names of variants, images and runtimes.
    *(
        ("--variant", value)
        for value in ("", " ", "a b", LONG, "ñandú", "日本語", "cpu\u202e", "-x", "../x", "cuda", "cu")
    ),
    *(("--variant", value) for value in ("gpu", "CPU", "cu126;ls", "cu126\n")),
    *((*DOCKER, "--image", value) for value in ("", " ", "a b", LONG, "ñandú", "-x", "../x", "a;b", "a\nb", "a@b")),
    *((*DOCKER, "--runtime", value) for value in ("", " ", "a b", LONG, "日本語", "-x", "run\x1b[31msc")),
    # Builds.
    *((option, value) for option in ("--torch", "--good", "--bad") for value in ("", " ", "a b", LONG, "日本語", "-x")),
    *(("--measure", "time", "--against", value) for value in ("", "a b", "main", "ñ")),
    *(("--good", value) for value in ("2026-02-31", "2.8.x", "latest", "../x", "\u202e2.8.0")),
    # Places.
    *((option, value) for option in ("--out", "--cache-dir") for value in ("", LONG, "x/" * 3000, " ", "\t")),
    *(("--python", value) for value in ("", " ", "a b", LONG, "nowhere/python", "日本語", "ok.py", "notests", "a\0b")),
    *(("--git", value) for value in ("", " ", "a b", "nowhere", LONG, "ext::sh -c ls", "-x", "ok.py", "日本語")),
    *(
        ("--index-url", value)
        for value in ("", " ", "a b", "pypi", LONG, "ftp://h/simple", "https://", "-x", "https://h:x")
    ),
    *(("--extra-index-url", value) for value in ("", "a b", "nowhere/simple", "ok.py")),
    *(("--files", value) for value in ("", LONG, "a\0b")),
    # Packages, and what click itself checks.
    *(("--with", value) for value in ("", " ", "a b", LONG, "ñandú", "日本語", "-x", "--index-url=h", "ok.py", "a\0b")),
    *(("--device", value) for value in ("", "gpu", LONG, "日本語")),
    *(("--channel", value) for value in ("", "weekly", LONG)),
    *(("--measure", value) for value in ("", "speed", LONG, "metric:", "日本語")),
    *(("--budget", value) for value in ("", "a b", "5", "nanq", LONG)),
    *(("--test", value) for value in ("", " ")),
]
SCRIPTS = [
    *(
        "ok.py::",
        "ok.py::::",
        "test_ok.py::",
        "test_ok.py::no_such",
        "test_ok.py::TestNone::test_a",
        "::",
        "::test_one",
    ),
    *(
        "ok.py::test_step",
        "test_ok.py:: ",
        "test_ok.py::test_onE[1]",
        "",
        " ",
        "notests",
        "notests::test_one",
        "nowhere.py",
    ),
    *("nowhere.py::test_one", "日本語.py", LONG, "ok.py/x.py", "a\x1b[31mb.py", "-", "help.txt", "x/" * 3000),
]


def wrong(words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the one line of error, of a command that started no run and left nothing."""

    def started(*_: object, **__: object) -> None:
        raise AssertionError("a run was started")

    monkeypatch.setattr("torchbisect.pipeline.run.Pipeline.execute", started)
    before = sorted(Path.cwd().rglob("*"))
    result = CliRunner().invoke(main, ["check", *words])
    lines = [line for line in result.output.splitlines() if not line.startswith(("note:", "torchbisect: note:"))]
    assert result.exit_code == 2, result.output[:3000]
    assert "Traceback" not in result.output
    assert len(lines) == 1, result.output[:3000]
    assert lines[0].startswith("torchbisect: ")
    assert lines[0].isprintable()
    assert len(lines[0]) < 700
    assert [path for path in sorted(Path.cwd().rglob("*")) if path not in before and "cache" not in path.parts] == []
    return lines[0]


@pytest.mark.parametrize("words", CASES, ids=lambda words: shlex.join(words)[:60])
def test_a_value_that_cannot_be(words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    assert words[-2] in wrong((*words, "ok.py"), monkeypatch), "the line names the option"


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: repr(script[:40]))
def test_a_script_that_cannot_be(script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong((script,), monkeypatch)


#: Keys of pyproject's table and values in TOML: a text there may have every character.
TABLE = [
    *(
        (key, f'"{value}"')
        for key in ("torch", "good", "variant", "index-url")
        for value in ("", "a\\u0000b", "ñ\\u202e")
    ),
    *((key, '["a\\u0000b"]') for key in ("with", "extra-index-url", "channel")),
    *((key, value) for key in ("variant", "torch") for value in ("1.5", "true", "[]", "{}")),
]


@pytest.mark.parametrize(("key", "value"), TABLE, ids=lambda word: str(word)[:30])
def test_a_value_of_the_file_that_cannot_be(
    key: str, value: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "pyproject.toml").write_text(f"[tool.torchbisect]\n{key} = {value}\n", encoding="utf-8")
    assert key in wrong(("ok.py",), monkeypatch)
