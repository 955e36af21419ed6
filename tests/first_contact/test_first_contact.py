"""Scripts as users have them: none that works under plain python is refused, and nothing of the user is changed."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from activity_folders import ACTIVITIES
from layout_folders import LAYOUTS
from project_folders import PROJECTS
from rarer_folders import RARER
from shell_folders import SHELL
from state_folders import STATE
from user_folders import COMPILED, FOLDERS, Folder

from torchbisect.cli.click_options import options_from
from torchbisect.cli.commands import main
from torchbisect.cli.typed_input import with_typed_input
from torchbisect.pipeline.local_provider import LocalProvider
from torchbisect.pipeline.progress import Display
from torchbisect.pipeline.run import Pipeline
from torchbisect.pipeline.shared_resources import SharedResources
from torchbisect.probe.journal import Journal
from torchbisect.reports.model.report import Report

pytestmark = pytest.mark.torch


@pytest.fixture(scope="module")
def shared() -> Iterator[SharedResources]:
    """Return a warm process of the installed torch."""
    resources = SharedResources(Journal())
    yield resources
    resources.close()


def reported(shared: SharedResources, command: str, *words: str) -> Report:
    """Return the report of a command, in this process."""
    context = main.commands[command].make_context(command, ["--torch", "installed", "--timeout", "30", *words])
    options = with_typed_input(options_from(command, context.params))
    pipeline = Pipeline(options, Display(-1), partial(LocalProvider, shared=shared))
    pipeline.execute()
    return pipeline.report


def listed(root: Path) -> dict[str, str]:
    """Return the text of every file; the folder of the results is left out."""
    return {
        str(path.relative_to(root)): path.read_text("utf-8")
        for path in sorted(root.rglob("*"))
        if path.is_file() and "torchbisect-out" not in path.parts
    }


ALL = {**FOLDERS, **PROJECTS, **LAYOUTS, **ACTIVITIES, **RARER, **STATE, **SHELL}
SOME_OF_EACH_KIND = [
    pytest.param(name, marks=[] if number % 5 == 0 and name in FOLDERS else pytest.mark.long)
    for number, name in enumerate(ALL)
]


def test_there_are_at_least_forty() -> None:
    assert len(ALL) >= 40


@pytest.mark.parametrize("name", SOME_OF_EACH_KIND)
def test_what_works_under_python_works_here(
    name: str, shared: SharedResources, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = ALL[name]
    monkeypatch.chdir(folder.make(tmp_path))
    for variable, value in folder.shell.items():
        monkeypatch.setenv(variable, value)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(folder.typed_input.encode())))
    before = listed(tmp_path)
    report = reported(shared, "check", *folder.words)
    assert (report.verdict, report.reason) == ("none", "compiled agrees with eager"), (report.logs, report.notices)
    assert not [note for note in report.notices if "repeat itself" in note]
    assert listed(tmp_path) == before


@pytest.mark.long
@pytest.mark.parametrize("name", ALL)
def test_it_works_under_python(name: str, tmp_path: Path) -> None:
    folder = ALL[name]
    words = [sys.executable, *(folder.plain or folder.words)]
    where = folder.make(tmp_path)
    # A shell keeps the working directory in PWD.
    variables = {**os.environ, "PWD": str(where), **folder.shell}
    subprocess.run(words, cwd=where, env=variables, input=folder.typed_input, text=True, check=True)


NEEDS_FILE = """
import torch

@torch.compile(backend="eager", fullgraph=True)
def step(x):
    with open("data/scale.txt") as file:
        return x * float(file.read())

print(step(torch.ones(2)))
"""
WRONG = """
import torch

def backend(graph, inputs):
    return lambda *values: [value + 1 for value in graph(*values)]

print(torch.compile(lambda x: x * 2, backend=backend)(torch.ones(2)))
"""


def _wrong(folder: Folder) -> Folder | None:
    """Return the folder with a backend that adds one in the place of a right one; ``None`` if that can't be."""
    files = {name: text.replace(COMPILED, WRONG) for name, text in folder.files.items()}
    return replace(folder, files=files) if files != folder.files else None


RUN_WHOLE = [
    "data beside the script, by a relative path",
    "data by the folder of the script, from another folder",
    "data of the working directory, script elsewhere",
    "a package with __main__",
    "arguments as python takes them",
    "an output file that is read again",
    "the project's root by the script's path",
    "data above the folder of a package",
    "a folder src, resources and a configuration",
    "a variable of the shell",
]


@pytest.mark.long
@pytest.mark.parametrize("name", RUN_WHOLE)
def test_a_whole_run_in_the_users_folder(
    name: str, shared: SharedResources, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The search of builds is left out, which installs them; the rest of ``run`` is all there."""
    folder = _wrong(ALL[name])
    assert folder is not None
    monkeypatch.chdir(folder.make(tmp_path))
    for variable, value in folder.shell.items():
        monkeypatch.setenv(variable, value)
    before = listed(tmp_path)
    report = reported(shared, "run", "--no-bisect", "--jobs", "1", "--budget", "25q", *folder.words)
    assert report.verdict == "mismatch", (report.reason, report.logs, report.notices)
    assert report.minimal is not None
    assert report.minimal.stands_alone, report.notices
    assert listed(tmp_path) == before


@pytest.mark.long
def test_a_minimal_script_that_needs_a_file_says_so(
    shared: SharedResources, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The plain runs of the minimal script find the file as well."""
    monkeypatch.chdir(Folder({"train.py": NEEDS_FILE, "data/scale.txt": "3", "other.txt": "x"}).make(tmp_path))
    report = reported(shared, "minimize", "--jobs", "1", "train.py")
    assert report.minimal is not None
    assert report.minimal.stands_alone
    assert "data/scale.txt" in report.minimal.source
    assert any("the shrunk script needs data/scale.txt" in note for note in report.notices)


HOME = """
import os
from pathlib import Path
assert Path("~/sets/a/w.txt").expanduser().read_text() == "3"
assert (Path.home() / "notes.txt").read_text() == "n"
assert sorted(os.listdir(Path.home() / "sets")) == ["a"]
os.makedirs(os.path.expanduser("~/.cache/acme"))
open(os.path.expanduser("~/.cache/acme/x"), "w").write("1")
try:
    import torchvision
except ImportError:
    pass
assert os.path.exists(os.path.join(os.environ["TORCH_HOME"], "hub"))
"""


def test_files_of_the_home_and_caches_of_libraries(
    shared: SharedResources, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The home of a run has what the script names in the user's, and nothing that it writes there stays."""
    files = {"sets/a/w.txt": "3", "sets/b/w.txt": "4", "notes.txt": "n", "secret.txt": "s", ".cache/torch/hub/x": ""}
    home = Folder(files).make(tmp_path / "home")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.chdir(Folder({"train.py": HOME + COMPILED}).make(tmp_path / "work"))
    before = listed(tmp_path)
    report = reported(shared, "check", "--cache-dir", str(tmp_path.with_name("cache")), "train.py")
    assert (report.verdict, report.reason) == ("none", "compiled agrees with eager"), (report.logs, report.notices)
    assert listed(tmp_path) == before


@pytest.mark.long
def test_a_test_is_shrunk(shared: SharedResources, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    test = """
import pytest
import torch


def backend(graph, inputs):
    return lambda *values: [value + 1 for value in graph(*values)]


@pytest.mark.parametrize("size", [2, 3])
def test_step(size, model):
    assert torch.compile(model, backend=backend)(torch.zeros(size)).sum() == 0


def test_other():
    pass
"""
    conftest = "import pytest\n\n\n@pytest.fixture\ndef model():\n    return lambda x: x * 2\n"
    monkeypatch.chdir(Folder({"tests/test_a.py": test, "tests/conftest.py": conftest}).make(tmp_path))
    report = reported(shared, "minimize", "--jobs", "1", "--budget", "30q", "tests/test_a.py::test_step[3]")
    assert report.verdict == "mismatch"
    assert report.minimal is not None
    assert report.minimal.bytes < report.minimal.original.bytes * 0.7, report.minimal.source
    assert report.command.endswith("'tests/test_a.py::test_step[3]'")


@pytest.mark.long
def test_no_text_of_a_file_outside_reaches_the_report(
    shared: SharedResources, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "secret.py").write_text("KEY = 'hunter2seven'\n")
    script = "try:\n    import helper\n    print(helper.KEY)\nexcept ImportError:\n    pass\n" + WRONG
    folder = Folder({"p/train.py": script}, where="p", links={"p/helper.py": "../secret.py"})
    monkeypatch.chdir(folder.make(tmp_path))
    report = reported(shared, "minimize", "--jobs", "1", "--budget", "20q", "train.py")
    assert report.verdict == "mismatch"
    assert "hunter2seven" not in str(report.to_json())
    assert any("helper.py" in note for note in report.notices)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("train.py", "--out", "x"), ""),
        (("plain.py", "--repeat", "2"), ""),
        (("plain.py", "--epochs", "2"), "--epochs is no option of torchbisect"),
    ],
)
def test_options_after_the_script(
    words: tuple[str, ...],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("import sys\nprint(sys.argv)\n")
    (tmp_path / "plain.py").write_text("import torch\n")
    context = main.commands["check"].make_context("check", list(words))
    shown = capsys.readouterr().err
    assert said in shown
    assert said or not shown
    options = options_from("check", context.params)
    assert str(options.script) == words[0]
    assert options.repeat == (2 if "--repeat" in words else 1)
    assert options.arguments == (() if "--repeat" in words else words[1:])
