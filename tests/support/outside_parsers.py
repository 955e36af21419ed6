"""Every function that parses bytes from outside, with texts for it and the errors that it may raise."""

from __future__ import annotations

import contextlib
import functools
import io
import json
import os
import sqlite3
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import httpx
from hypothesis import strategies as st
from sample_answers import ANSWERS, FACTS, GPU, PYTHON, TRACE
from spoiled import spoiled, spoiled_json

from torchbisect.bisect.sources.history import _commits, reverted_commit
from torchbisect.bisect.sources.nightly import nightlies
from torchbisect.bisect.sources.partial_wheel import RemoteFile, read_python_files
from torchbisect.bisect.sources.release import releases
from torchbisect.bisect.sources.selection import parse_build
from torchbisect.cli.commands import main
from torchbisect.cli.configuration import file_settings
from torchbisect.containers.environment import parse_facts, same_version
from torchbisect.containers.index.indexes import Indexes, parse_pip_config
from torchbisect.containers.index.pages import JSON, _parse
from torchbisect.containers.process.processes import owner_is_dead
from torchbisect.containers.python.interpreter import Interpreter
from torchbisect.containers.python.variants import choose_variant, gpu_failure, parse_gpus
from torchbisect.containers.venv.uv_errors import error_from_uv, error_of_package
from torchbisect.core.build import Build
from torchbisect.core.decode import DecodeError, decode, read_json, read_object
from torchbisect.core.errors import IndexUnreachable, InputError, InstallFailed, MachineError
from torchbisect.core.requirement import parse_requirement, requirement_name
from torchbisect.core.retry import RetryPolicy, Transient
from torchbisect.core.scrub import scrub
from torchbisect.core.trace import Trace
from torchbisect.core.verdict import Verdict
from torchbisect.pipeline.notebook import notebook_source
from torchbisect.pipeline.options import Options
from torchbisect.pipeline.script import open_script
from torchbisect.probe.agent_client import _Reply
from torchbisect.probe.journal import Journal
from torchbisect.probe.judge.classify import find_mismatch, find_untestable
from torchbisect.probe.judge.observation import Observation
from torchbisect.probe.module_sources import siblings
from torchbisect.probe.script_variables import variables_of
from torchbisect.reports import files
from torchbisect.reports.render import html, markdown
from torchbisect.triage.database import Database
from torchbisect.triage.github import Post, Reference
from torchbisect.triage.issue_input import post_in, reference_in
from torchbisect.triage.issue_row import IssueRow, called_operators
from torchbisect.triage.issue_sources import jobs_from
from torchbisect.triage.issues.body import read_issue, reply
from torchbisect.triage.issues.code_blocks import code_blocks
from torchbisect.triage.issues.stated_torch import stated_torch
from torchbisect.triage.issues.stated_variables import stated_variables
from torchbisect.triage.jobs import TaskResult

ROOT = Path(__file__).resolve().parents[2]
BUILD = Build("2.8.0")
URL = "https://host.example/simple/torch/"
NO_RETRY = RetryPolicy(0.0, 0.0, 0.0)
SECONDS = 2.0  # of the processor, the most for one text


@dataclass(frozen=True)
class Parser:
    """A parser of bytes from outside.

    Attributes:
        parse: the function; it gets a text, or whatever the strategy gives.
        texts: a strategy for texts.
        errors: the errors that it may raise.
    """

    parse: Callable[[Any], object]
    texts: st.SearchStrategy[Any]
    errors: tuple[type[Exception], ...] = ()


@functools.cache
def folder() -> Path:
    """The folder of the files of this process."""
    return Path(tempfile.mkdtemp(prefix="torchbisect-fuzz-"))


def file_with(name: str, text: str) -> Path:
    path = folder() / name
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    return path


# What agents and environments say.

_MAC = {**PYTHON, "platform": "macosx-14.0-arm64", "mac": "14.1", "libc": None}
_INTERPRETER = Interpreter.from_answer(Path("python3"), json.dumps(PYTHON))


def parse_answer(line: str) -> None:
    observation = Observation.from_json(decode(_Reply, read_object(line), "line").answer)
    if find_untestable(observation) is None:
        find_mismatch(observation, "import torch\nassert x.requires_grad, 'words'\n")


def parse_journal(text: str) -> None:
    journal = Journal(file_with("journal.jsonl", text))
    journal.tell(lambda line: None)
    for key in ("a", "b", ""):
        journal.get(key, functools.partial(decode, Verdict))
    journal.put("new", {"answer": "same"})
    assert Journal(folder() / "journal.jsonl").get("new") == {"answer": "same"}


def parse_environment_facts(text: str) -> None:
    facts = parse_facts(text)
    same_version("2.8.0", facts.torch)


def parse_interpreter(text: str) -> None:
    found = Interpreter.from_answer(Path("python3"), text)
    assert len(found.platforms) < 1000
    found.accepts("torch-2.8.0-cp311-cp311-manylinux_2_28_x86_64.whl")


# Indexes and wheels.

_WHEEL = "torch-2.8.0+cpu-cp311-cp311-manylinux_2_28_x86_64.whl"
_NIGHTLY = "torch-2.15.0.dev20260801+cpu-cp311-cp311-manylinux_2_28_x86_64.whl"
_HTML = f"""<!DOCTYPE html><html><head><meta name="pypi:repository-version" content="1.1"><base href="../"></head>
<body><a href="{_WHEEL}#sha256={"a" * 64}" data-requires-python="&gt;=3.9" data-yanked="bad &amp; old">{_WHEEL}</a>
<!-- nothing --><a href='https://x.example/{_NIGHTLY}' data-dist-info-metadata="true">{_NIGHTLY}</a></body></html>"""
_FILE = {"filename": _WHEEL, "url": f"https://x.example/{_WHEEL}", "hashes": {"sha256": "a" * 64}, "size": 3,
         "requires-python": ">=3.9", "yanked": False, "upload-time": "2026-01-02T03:04:05.678Z"}  # fmt: skip
_PAGE = {"meta": {"api-version": "1.1"}, "name": "torch", "versions": ["2.8.0"],
         "files": [_FILE, {**_FILE, "filename": _NIGHTLY, "yanked": "old"}]}  # fmt: skip


def _parse_page(text: str, kind: str) -> None:
    body = text.encode("utf-8", "surrogatepass")
    response = httpx.Response(200, headers={"Content-Type": kind}, content=body, request=httpx.Request("GET", URL))
    page = _parse(response, "torch", "the index")
    for listing in (releases(page.packages, _INTERPRETER), nightlies(page.packages, _INTERPRETER)):
        assert set(listing.wheels) == {build.version for build in listing.builds}


def _archive() -> str:
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name in ("torch/a.py", "torch/lib/x.so", "torch/_dynamo/b.py", "torch-2.8.0.dist-info/METADATA"):
            wheel.writestr(name, f"{name} = 1\n" * 9)
    return whole.getvalue().decode("latin-1")


def parse_wheel(text: str) -> None:
    data = text.encode("latin-1", "replace")

    def answer(request: httpx.Request) -> httpx.Response:
        first, _, last = request.headers["Range"].removeprefix("bytes=").partition("-")
        start = int(first) if first else max(len(data) - int(last), 0)
        stop = min(int(last) + 1 if first else len(data), len(data))
        if start >= stop:
            return httpx.Response(416)
        return httpx.Response(
            206, headers={"Content-Range": f"bytes {start}-{stop - 1}/{len(data)}"}, content=data[start:stop]
        )

    with httpx.Client(transport=httpx.MockTransport(answer)) as client:
        wheel = read_python_files(RemoteFile("https://x.example/torch.whl", client, retry=NO_RETRY))
    assert all(name.startswith("torch/") and ".." not in name for name in wheel.files)


# Settings of the user and of a stranger's project.

_UV = 'find-links = ["/w"]\n[[index]]\nurl = "https://x/s"\ndefault = true\n[pip]\nextra-index-url = ["https://e/s"]\n'
_PYPROJECT = '[project]\nname = "x"\n[tool.torchbisect]\ntorch = "2.8.0"\njobs = 2\nwith = ["numpy"]\ntimeout = 1.5\n'


def parse_uv_configuration(text: str) -> None:
    environ = {"UV_CONFIG_FILE": str(file_with("uv.toml", text)), "HOME": str(folder())}
    str(Indexes.from_configuration(None, (), environ, python="/no-such-python"))


def parse_pyproject(text: str) -> None:
    with contextlib.redirect_stderr(io.StringIO()):
        file_settings(file_with("pyproject.toml", text), main.commands)


def parse_requirements(text: str) -> None:
    for sdists in (False, True):
        found = parse_requirement(text, sdists=sdists)
        assert found.isprintable()
        assert not found.startswith("-")
        requirement_name(found)


def parse_uv_errors(text: str) -> None:
    error_from_uv(text, BUILD, folder(), packages=("einops>=1", "numpy"), indexes="https://x/s")
    error_of_package(text, "einops>=1", "https://x/s")


# Scripts.


def parse_script_name(text: str) -> None:
    open_script(Options(script=Path(text), workdir=folder()))


def parse_script(text: str) -> None:
    variables_of(text)
    siblings(text, str(folder()))
    called_operators(text)
    open_script(Options(script=file_with("script.py", text), workdir=folder()))


def parse_notebook(text: str) -> None:
    notebook_source(text.encode("utf-8", "surrogatepass"), "a.ipynb")


# Issues.

_SCRIPT = "import torch\n@torch.compile\ndef f(x):\n    return x + 1\nprint(f(torch.ones(2)))\n"
_BODY = (
    f"### Bug\n\nIt works in 2.5.1 but fails on the nightly 2026-02-12:\n\n```python\n{_SCRIPT}```\n"
    "Run with `TORCH_LOGS=dynamo TORCHINDUCTOR_CPP_WRAPPER=1 python a.py`.\n\n### Versions\n\n"
)
_COLLECTED = (
    "Collecting environment information...\nPyTorch version: 2.6.0.dev20241112+cu124\nIs debug build: False\n"
    "Python version: 3.11.7 (main)\nGPU models and configuration: \nGPU 0: NVIDIA A100\nGPU 1: NVIDIA A100\n"
    "[pip3] torch==2.6.0a0+git1234567\n[conda] pytorch 2.5.1 py3.11_cuda12.4_cudnn9 pytorch\n"
)
_BODIES = [_BODY + _COLLECTED, f"<details>\n<pre><code>{_SCRIPT}</code></pre></details>", f">>> {_SCRIPT}", _SCRIPT]
_POST = {
    "number": 7, "id": 9, "title": "[inductor] wrong", "body": _BODY, "user": {"login": "x"}, "state": "open",
    "labels": [{"name": "bug"}], "html_url": "https://github.com/a/b/issues/7", "url": "https://api.github.com/x",
}  # fmt: skip
_COMMENT = {"id": 3, "body": markdown.FIRST_LINE + "\n<!-- torchbisect:signature a1 -->\nx", "user": {"login": "y"}}


def parse_body(text: str) -> None:
    for any_package in (False, True):
        reply(read_issue(text, text[:200], any_package=any_package))


def parse_comment(text: str) -> None:
    post = Post.of(read_json(text))
    post.body.startswith(markdown.FIRST_LINE)
    assert isinstance(post.identity, int)


def parse_address(text: str) -> None:
    scrub(text)
    reference_in(text)
    str(Reference.parse(text))


# Results.

_REPORTS = [
    json.loads((path / "report.json").read_text()) for path in sorted((ROOT / "reports/examples").iterdir())[:2]
]
_RESULT = {"name": "a/b#1", "report": _REPORTS[0], "problem": "", "retry": False}


def parse_report(text: str) -> None:
    report = files.load(file_with("report.json", text))
    markdown.render(report)
    html.render(report)


def parse_rows(row: dict[str, Any]) -> None:
    path = folder() / f"{os.getpid()}.sqlite"
    path.unlink(missing_ok=True)
    with Database(path) as database:
        database.put(IssueRow("a"))
        with contextlib.closing(sqlite3.connect(path)) as connection, contextlib.suppress(sqlite3.Error, OverflowError):
            connection.execute(f"UPDATE issue SET {', '.join(f'{name} = ?' for name in row)}", list(row.values()))
            connection.commit()
        for found in database.rows():
            found.to_json()


_CELLS = st.none() | st.integers() | st.floats() | st.binary(max_size=4) | st.text(st.characters(), max_size=8).filter(
    lambda text: text.isascii()
) | st.sampled_from(["[]", '["a"]', "[1]", "{}", "[" * 300, "mismatch", "none"])  # fmt: skip
_ROWS = st.dictionaries(st.sampled_from(sorted(asdict(IssueRow("x")))), _CELLS, min_size=1, max_size=4)

_SHA = "a" * 40
_LOG = f'\0{_SHA}\x001786000000\0Revert "Fix (#1)"\n\nThis reverts commit {_SHA}.\n\0\n\ntorch/a.py\n"t\\303.py"\n'
_UV_ERRORS = [
    "  × No solution found when resolving dependencies:\n  ╰─▶ Because torch==2.8.0 has no wheels with a matching "
    "Python ABI tag (e.g., `cp311`) and you require torch==2.8.0, we can conclude that nothing can be had.\n",
    "error: Failed to fetch: `https://x:y@h/w.whl`\n  Caused by: HTTP status client error (401 Unauthorized) for url\n",
    "error: Failed to build `x==1`\n  Caused by: Call to `setuptools.build_meta.build_wheel` failed (exit status: 1)\n",
    "Because nosuch was not found in the package registry and einops>=1 depends on Python>=3.99, we can conclude",
]
_NAMES = ["a.py", "tests/test_a.py::TestA::test_b[1-x]", "a.ipynb", "pkg/../a.py", "/etc/passwd", "."]
_CODE = [
    "import os\nos.environ['TORCH_LOGS'] = 'x'\nfrom .a import b\n" + _SCRIPT,
    "# coding: latin-1\nx = 1\n",
    _SCRIPT,
]
_BUILDS = ["2.8.0", "2026-02-12", "2.14.0.dev20260212+cu126", "installed", "torch==2.8.0", "20260212"]
_NEEDS = [
    "numpy>=2",
    "x[a,b]==1; python_version<'3'",
    "x @ https://h/x-1-py3-none-any.whl",
    "git+https://h/x",
    "-r a.txt",
]
_ADDRESSES = ["pytorch/pytorch#12", "https://github.com/a/b/issues/7#issuecomment-1", "https:/github.com/a/b/pull/3?x"]

PARSERS: dict[str, Parser] = {
    "agent-answer": Parser(parse_answer, spoiled_json(ANSWERS), (DecodeError,)),
    "trace": Parser(lambda text: Trace.from_json(read_json(text)), spoiled_json([TRACE]), (DecodeError,)),
    "journal": Parser(
        parse_journal,
        spoiled(['{"key": "a", "value": {"answer": "same"}}\n{"key": "b", "value": {"answer": "none"}}\n']),
    ),
    "facts": Parser(parse_environment_facts, spoiled_json([FACTS]), (DecodeError,)),
    "gpu-facts": Parser(lambda text: gpu_failure(text, BUILD), spoiled_json([GPU])),
    "interpreter": Parser(parse_interpreter, spoiled_json([PYTHON, _MAC]), (InputError,)),
    "nvidia-smi": Parser(
        lambda text: choose_variant(["cpu", "cu126"], parse_gpus(text)),
        spoiled(["NVIDIA H100 80GB HBM3, 550.54.15, 9.0\nNVIDIA A100, PCIe, 535.1, 8.0\n"]),
        (InputError,),
    ),
    "process-owner": Parser(owner_is_dead, spoiled(["0a-1b.4026531836.123.45678"])),
    "index-html": Parser(lambda text: _parse_page(text, "text/html"), spoiled([_HTML]), (IndexUnreachable, Transient)),
    "index-json": Parser(lambda text: _parse_page(text, JSON), spoiled_json([_PAGE]), (IndexUnreachable, Transient)),
    "wheel": Parser(parse_wheel, spoiled([_archive()]), (InstallFailed, IndexUnreachable)),
    "uv-configuration": Parser(parse_uv_configuration, spoiled([_UV])),
    "pip-configuration": Parser(
        parse_pip_config, spoiled(["global.index-url='https://x'\ninstall.find-links='/a\\n/b'\n:env:.index-url='y'\n"])
    ),
    "pyproject": Parser(parse_pyproject, spoiled([_PYPROJECT]), (InputError,)),
    "requirement": Parser(parse_requirements, spoiled(_NEEDS), (InputError,)),
    "build": Parser(parse_build, spoiled(_BUILDS), (InputError,)),
    "uv-errors": Parser(parse_uv_errors, spoiled(_UV_ERRORS)),
    "script-name": Parser(parse_script_name, spoiled(_NAMES).filter(lambda text: text != "-"), (InputError,)),
    "script": Parser(parse_script, spoiled(_CODE), (InputError,)),
    "notebook": Parser(
        parse_notebook,
        spoiled_json([{"cells": [{"cell_type": "code", "source": ["%time x = 1\n", "!ls"]}], "nbformat": 4}]),
        (InputError,),
    ),
    "issue-body": Parser(parse_body, spoiled(_BODIES)),
    "collect-env": Parser(lambda text: parse_body(f"### Versions\n\n{text}"), spoiled([_COLLECTED])),
    "stated-torch": Parser(lambda text: stated_torch(text, text, text[:200]), spoiled(_BODIES)),
    "stated-variables": Parser(lambda text: stated_variables(text, code_blocks(text)), spoiled(_BODIES)),
    "issue-file": Parser(
        lambda text: post_in(file_with("issue.json", text)), spoiled_json([_POST, [_POST]]), (InputError,)
    ),
    "issue-or-text": Parser(
        lambda text: post_in(file_with("issue.md", text)), spoiled([json.dumps(_POST), "# x\n" + _BODY]), (InputError,)
    ),
    "issues": Parser(
        lambda text: jobs_from(file_with("issues.jsonl", text)),
        spoiled_json([_POST, [_POST, _POST]]) | spoiled([f"{json.dumps(_POST)}\n" * 2]),
        (InputError,),
    ),
    "comment": Parser(parse_comment, spoiled_json([_COMMENT, _POST]), (InputError, DecodeError)),
    "address": Parser(parse_address, spoiled(_ADDRESSES), (InputError,)),
    "report": Parser(parse_report, spoiled_json(_REPORTS), (InputError,)),
    "worker-result": Parser(
        lambda text: TaskResult.from_json(read_json(text)), spoiled_json([_RESULT]), (DecodeError, InputError)
    ),
    "database-row": Parser(parse_rows, _ROWS, (InputError, MachineError)),
    "git-log": Parser(lambda text: list(_commits(text)), spoiled([_LOG * 2])),
    "revert": Parser(reverted_commit, spoiled([f'Revert "x"\n\nThis reverts commit {_SHA}.\n'])),
}
