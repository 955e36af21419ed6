"""Options from the environment and from ``pyproject.toml``: every option of every command, and who may set what."""

from __future__ import annotations

import datetime
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest
from click.core import ParameterSource
from click.testing import CliRunner, Result

from torchbisect.cli.click_options import Size
from torchbisect.cli.commands import main
from torchbisect.cli.configuration import NOT_FROM_A_FILE, file_settings, option_name, options_of, variable_of
from torchbisect.core.errors import InputError

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
EVERY = [(name, option) for name, command in main.commands.items() for option in options_of(command)]
IDS = [f"{name}--{option_name(option)}" for name, option in EVERY]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [name for name in os.environ if name.startswith("TORCHBISECT_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def sample(option: click.Option) -> tuple[str, Any]:
    """Return a text that an option takes, and the value that it stands for."""
    kind = option.type
    if option.is_flag:
        return ("no", False) if option.default else ("yes", True)
    if isinstance(kind, click.Choice):
        value: Any = kind.choices[-1]
        text = str(value)
    elif isinstance(kind, Size):
        text, value = "3GB", 3_000_000_000
    elif isinstance(kind, click.types.IntParamType):
        text, value = "7", 7
    elif isinstance(kind, click.types.FloatParamType):
        text, value = "2.5", 2.5
    else:
        text, value = "word", Path("word") if isinstance(kind, click.Path) else "word"
    return text, (value,) if option.multiple else value


def parsed(name: str, words: list[str], monkeypatch: pytest.MonkeyPatch) -> tuple[dict[str, Any], click.Context]:
    """Parse a command line as the program does, and return the parameters and the context instead of a run."""
    seen: list[click.Context] = []
    with monkeypatch.context() as patch:
        patch.setattr(main.commands[name], "callback", lambda **_: seen.append(click.get_current_context()))
        done = CliRunner().invoke(main, [name, *words, *(["out"] if name in ("report", "watch", "suite") else [])])
    assert done.exit_code == 0, done.output
    return seen[0].params, seen[0]


def as_toml(option: click.Option) -> str:
    """Return a value of the file for an option."""
    text, value = sample(option)
    one = value[0] if option.multiple else value
    written = json.dumps(text if isinstance(option.type, Size) or isinstance(one, Path) else one)
    return f"{option_name(option)} = {f'[{written}]' if option.multiple else written}\n"


@pytest.mark.parametrize(("name", "option"), EVERY, ids=IDS)
def test_every_option_is_read_from_its_variable(
    name: str, option: click.Option, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, value = sample(option)
    monkeypatch.setenv(f"TORCHBISECT_{option_name(option).upper().replace('-', '_')}", text)
    params, context = parsed(name, [], monkeypatch)
    assert params[str(option.name)] == value
    assert context.get_parameter_source(str(option.name)) is ParameterSource.ENVIRONMENT


@pytest.mark.parametrize(("name", "option"), EVERY, ids=IDS)
def test_every_option_is_read_from_the_file_unless_it_reaches_this_machine(
    name: str, option: click.Option, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "pyproject.toml").write_text(f"[tool.torchbisect]\n{as_toml(option)}", encoding="utf-8")
    if option_name(option) in NOT_FROM_A_FILE:
        done = CliRunner().invoke(main, [name])
        assert done.exit_code == 2
        assert f"--{option_name(option)} or the variable {variable_of(option)}" in done.output
        return
    params, context = parsed(name, [], monkeypatch)
    assert params[str(option.name)] == sample(option)[1]
    assert context.get_parameter_source(str(option.name)) is ParameterSource.DEFAULT_MAP


def test_a_list_of_channels_does_not_disturb_the_command_that_takes_one(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "pyproject.toml").write_text('[tool.torchbisect]\nchannel = ["release", "nightly"]\n', encoding="utf-8")
    assert parsed("run", [], monkeypatch)[0]["channels"] == ("release", "nightly")
    assert parsed("builds", [], monkeypatch)[0]["channel"] == "release"


def test_the_order_is_command_line_variable_file_default(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "pyproject.toml").write_text("[tool.torchbisect]\nrepeat = 2\nseed = 2\njobs = 2\n", encoding="utf-8")
    monkeypatch.setenv("TORCHBISECT_REPEAT", "3")
    monkeypatch.setenv("TORCHBISECT_SEED", "3")
    params, _ = parsed("check", ["--repeat", "4"], monkeypatch)
    assert [params[name] for name in ("repeat", "seed", "jobs", "timeout")] == [4, 3, 2, None]


def test_several_values(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "pyproject.toml").write_text('[tool.torchbisect]\nchannel = "nightly"\nwith = ["a", "b"]\n', "utf-8")
    monkeypatch.setenv("TORCHBISECT_EXTRA_INDEX_URL", "https://one.example https://two.example")
    params, _ = parsed("run", [], monkeypatch)
    assert params["channels"] == ("nightly",)
    assert params["packages"] == ("a", "b")
    assert params["extra_index_urls"] == ("https://one.example", "https://two.example")


def test_a_day_of_a_nightly_needs_no_quotes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "pyproject.toml").write_text("[tool.torchbisect]\ntorch = 2026-02-12\n", encoding="utf-8")
    assert parsed("check", [], monkeypatch)[0]["torch"] == datetime.date(2026, 2, 12).isoformat()


BAD_FILES = {
    '[tool.torchbisect]\ntocrh = "2.8.0"\nfoo = 1\n': "unknown options: foo, tocrh (is it torch?)",
    "[tool.torchbisect]\ntorch = 2.10\n": "torch = 2.1: write a text in quotes",
    '[tool.torchbisect]\nnearest = "yes"\n': "nearest = 'yes': write true or false",
    "[tool.torchbisect]\nrepeat = true\n": "repeat = True: write a number",
    "[tool.torchbisect.torch]\nversion = 1\n": "write a text in quotes",
    "[tool]\ntorchbisect = 3\n": "is no table",
    "[tool.torchbisect\n": "is no TOML",
    '[tool.torchbisect]\nrepeat = "x"\n': "(from [tool.torchbisect] in pyproject.toml)",
    "[tool.torchbisect]\nrepeat = 0\n": "(from [tool.torchbisect] in pyproject.toml)",
}


def error_of(done: Result) -> str:
    """Return the one line that says what is wrong."""
    (line,) = [line for line in done.output.splitlines() if line.startswith(("torchbisect:", "Error:"))]
    assert (done.exit_code, "Traceback" in done.output) == (2, False)
    return line


@pytest.mark.parametrize(("text", "said"), BAD_FILES.items())
def test_what_cannot_be_used_is_one_line(text: str, said: str, folder: Path) -> None:
    (folder / "pyproject.toml").write_text(text, encoding="utf-8")
    assert said in error_of(CliRunner().invoke(main, ["check", "repro.py"]))


def test_a_bad_variable_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHBISECT_REPEAT", "often")
    assert "variable TORCHBISECT_REPEAT" in error_of(CliRunner().invoke(main, ["check", "repro.py"]))


@pytest.mark.parametrize("text", ["[tool.ruff]\nline-length = 3\n", "[broken", "\0", ""])
def test_files_of_other_tools_play_no_part(text: str, folder: Path) -> None:
    (folder / "pyproject.toml").write_text(text, encoding="utf-8")
    assert file_settings(folder / "pyproject.toml", main.commands) == {}


def test_only_this_users_file_in_the_working_directory_counts(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "other").mkdir()
    for place in (folder, folder / "other"):
        (place / "pyproject.toml").write_text("[tool.torchbisect]\nrepeat = 9\n", encoding="utf-8")
    monkeypatch.chdir(folder / "other")
    (folder / "other/pyproject.toml").unlink()
    assert parsed("check", ["../repro.py"], monkeypatch)[0]["repeat"] == 1
    monkeypatch.chdir(folder)
    assert parsed("check", ["other/repro.py"], monkeypatch)[0]["repeat"] == 9
    os.chmod("pyproject.toml", 0o666)
    assert parsed("check", ["other/repro.py"], monkeypatch)[0]["repeat"] == 1
    os.chmod("pyproject.toml", 0o644)
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    assert parsed("check", ["other/repro.py"], monkeypatch)[0]["repeat"] == 1


def test_a_run_inside_a_test_command_takes_its_own_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHBISECT_PYTHON", "/environment/bin/python")
    assert parsed("check", [], monkeypatch)[0]["python"] == "/environment/bin/python"
    monkeypatch.setenv("TORCHBISECT_TORCH_VERSION", "2.8.0")
    assert parsed("check", [], monkeypatch)[0]["python"] == sys.executable


def test_no_variable_of_an_option_has_another_meaning_too() -> None:
    """Every other variable with our prefix in the code; two are options, and their double use is solved above."""
    parts = ["cli", "api", "triage", "pipeline", "reports", "minimizer", "bisect", "probe", "containers", "core"]
    found: set[str] = set()
    for place in (path for part in parts for path in (ROOT / part / "torchbisect").rglob("*.py")):
        found.update(re.findall(r"""["'](TORCHBISECT_[A-Z_]+)["']""", place.read_text(encoding="utf-8")))
    assert "TORCHBISECT_SCRATCH" in found
    shared = found & {variable_of(option) for _, option in EVERY}
    assert shared == {"TORCHBISECT_PYTHON", "TORCHBISECT_CACHE_DIR"}


def test_variables_reach_the_real_command(folder: Path) -> None:
    (folder / "repro.py").write_text("print(1)\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "torchbisect", "check", "repro.py"],
        env={**os.environ, "TORCHBISECT_IMAGE": "some"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, "--image is for --sandbox docker" in done.stderr) == (2, True)


def test_settings_raise_for_a_key_once(folder: Path) -> None:
    place = folder / "pyproject.toml"
    place.write_text('[tool.torchbisect]\npython = "evil"\n', encoding="utf-8")
    with pytest.raises(InputError, match="may not set python"):
        file_settings(place, main.commands)


@pytest.mark.parametrize(("name", "text"), [("TORCHBISECT_JSON", ""), ("ACME", "[tool.torchbisect]\njson = true\n")])
def test_an_error_is_json_where_json_is_asked_for_without_the_option(folder: Path, name: str, text: str) -> None:
    (folder / "pyproject.toml").write_text(text)
    command = [sys.executable, "-m", "torchbisect", "check", "none.py"]
    done = subprocess.run(command, env={**os.environ, name: "1"}, capture_output=True, text=True, check=False)
    assert json.loads(done.stdout)["exit_code"] == done.returncode == 2
