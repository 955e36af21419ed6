"""Reading of issues, and rejected command lines. No torch and no network."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from issue_flood import flood
from loopback import listening
from nested import nest

from torchbisect.cli.commands import main
from torchbisect.containers.store.removal import remove_tree
from torchbisect.core.decode import DecodeError
from torchbisect.core.errors import InputError
from torchbisect.minimizer.budget import Budget
from torchbisect.pipeline.options import Options
from torchbisect.reports.model.report import Report
from torchbisect.triage.issue_sources import jobs_from, jobs_searched
from torchbisect.triage.jobs import IssueJob, IssueTask, TaskResult

SCRIPT = "import torch\nprint(torch.compile(lambda x: x + 1)(torch.ones(1)))\n"


@pytest.mark.slow
def test_two_hundred_recorded_issues_are_read(tmp_path: Path) -> None:
    recorded = flood()
    assert len(recorded) == 200
    # A list, as the API returns it, and one issue a line.
    (tmp_path / "list.json").write_text(json.dumps([one.data for one in recorded]))
    (tmp_path / "lines.jsonl").write_text("\n".join(json.dumps(one.data) for one in recorded))
    jobs = jobs_from(tmp_path / "lines.jsonl")
    assert jobs == jobs_from(tmp_path / "list.json")
    assert [job.name for job in jobs] == [one.name for one in recorded]
    assert [job.source is None for job in jobs] == [one.state == "nothing-to-run" for one in recorded]
    assert all(job.problem for job in jobs if job.source is None)


def test_the_output_of_the_github_command_line_is_read(tmp_path: Path) -> None:
    url = "https://github.com/pytorch/pytorch/issues/9"
    issue = {"number": 9, "title": "x", "body": f"On 2.8.0:\n```python\n{SCRIPT}```", "url": url}
    (tmp_path / "gh.json").write_text(json.dumps([issue]))
    (job,) = jobs_from(tmp_path / "gh.json")
    assert (job.name, job.url, job.source) == ("pytorch/pytorch#9", url, SCRIPT)


def test_a_malformed_line_is_an_issue_without_a_script(tmp_path: Path) -> None:
    good = json.dumps({"number": 3, "body": f"```python\n{SCRIPT}```"})
    (tmp_path / "x.jsonl").write_text(f'{{"number": \n[1]\n\n"x"\n{good}\n')
    bad, odd, text, job = jobs_from(tmp_path / "x.jsonl")
    assert "line 1 of x.jsonl" in bad.problem
    assert odd.source is text.source is None
    assert (job.name, job.source) == ("#3", SCRIPT)


@given(st.lists(st.text(max_size=30), max_size=5))
def test_no_file_content_crashes_it(tmp_path_factory: pytest.TempPathFactory, lines: list[str]) -> None:
    path = tmp_path_factory.getbasetemp() / "odd.jsonl"
    path.write_bytes("\n".join(lines).encode("utf-8", "surrogatepass"))
    try:
        jobs_from(path)
    except InputError:
        pass


def test_a_folder_of_scripts(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "b.py").write_text(SCRIPT)
    (tmp_path / "a.py").write_text("for x in\n")
    (tmp_path / "notes.txt").write_text("none")
    nest(tmp_path, "d", 1500)
    broken, job = jobs_from(tmp_path)
    assert (broken.name, broken.source) == ("a.py", None)
    assert "line 1" in broken.problem
    assert (job.name, job.source, job.path) == ("deep/b.py", SCRIPT, str(tmp_path / "deep" / "b.py"))
    remove_tree(tmp_path / "d")


@pytest.fixture
def github(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Start a local server with three issues on two pages; return the queries that it receives."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            wanted = parse_qs(urlsplit(self.path).query)
            asked.extend(wanted.get("q", ()))
            second = wanted.get("page") == ["2"]
            items = [{"number": number, "body": f"```python\n{SCRIPT}```"} for number in ((3,) if second else (1, 2))]
            text = json.dumps({"items": items}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            if not second:
                here = f"http://{self.headers['Host']}/search/issues?page=2"
                self.send_header("Link", f'<{here}>; rel="next"')
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: object) -> None:
            pass

    with listening(Handler) as address:
        monkeypatch.setenv("GITHUB_API_URL", address)
        yield asked


def test_a_search(github: list[str]) -> None:
    assert [job.name for job in jobs_searched("repo:a/b label:x", 200, print)] == ["#1", "#2", "#3"]
    assert [job.name for job in jobs_searched("repo:a/b is:pr", 2, print)] == ["#1", "#2"]
    assert github[0] == "repo:a/b label:x is:issue"
    assert "repo:a/b is:pr" in github


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "--search"),
        (("x.jsonl", "--search", "y"), "either"),
        (("nowhere.jsonl",), "nowhere.jsonl"),
        (("empty.jsonl",), "no issue in it"),
        ((".",), "no *.py"),
        (("x.jsonl", "--executor", "ray"), "--address"),
        (("x.jsonl", "--address", "127.0.0.1:1"), "--executor ray"),
        (("x.jsonl", "--gpus", "1"), "--gpus"),
    ],
)
def test_unusable_command_lines_are_rejected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.jsonl").touch()
    result = CliRunner().invoke(main, ["triage", *words])
    assert result.exit_code == 2
    (line,) = [line for line in result.output.splitlines() if line.startswith("torchbisect:")]
    assert said in line


paths = st.text("ab/. ", min_size=1).map(Path)
words = st.lists(st.text(max_size=5), max_size=3).map(tuple)


@given(
    st.from_type(IssueJob),
    st.builds(
        Options,
        budget=st.sampled_from([None, Budget.parsed("90s"), Budget.parsed("200q")]),
        script=paths,
        out=paths,
        cache_dir=st.none() | paths,
        packages=words,
        torch=st.none() | st.text(),
    ),
)
def test_a_task_crosses_processes(job: IssueJob, options: Options) -> None:
    task = IssueTask(job, options)
    assert IssueTask.from_json(json.loads(json.dumps(task.to_json()))) == task


@pytest.mark.parametrize("report", [None, Report("complete", "none", None, "torchbisect run x.py")])
def test_a_result_crosses_processes(report: Report | None) -> None:
    done = TaskResult("a", report, "words", retry=True)
    assert TaskResult.from_json(json.loads(json.dumps(done.to_json()))) == done


_RESULT = {"name": "a", "report": None, "problem": "", "retry": False}


@pytest.mark.parametrize(
    "data",
    [None, [], "x", 3, {}, {**_RESULT, "name": 3}, {**_RESULT, "report": []}, {**_RESULT, "report": {"schema": "x"}},
     {**_RESULT, "report": 0}, {**_RESULT, "problem": None}, {**_RESULT, "retry": 1}],
)  # fmt: skip
def test_a_result_that_is_none(data: object) -> None:
    with pytest.raises((DecodeError, InputError)) as caught:
        TaskResult.from_json(data)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 200


def test_the_script_and_the_options_are_in_the_key() -> None:
    def key(job: IssueJob, options: Options) -> str:
        return IssueTask.of(job, options, Path("out"), stated=False).key

    job, options = IssueJob("a", source=SCRIPT), Options(Path())
    assert key(job, options) == key(IssueJob("a", "another title", source=SCRIPT), options)
    assert key(job, options) != key(IssueJob("a", source=SCRIPT + "\n"), options)
    assert key(job, options) != key(job, Options(Path(), torch="2.8.0"))
    assert key(job, options) != key(IssueJob("a", source=SCRIPT, packages=("numpy",)), options)


def test_the_version_that_an_issue_states_is_used_on_request() -> None:
    job, options = IssueJob("a", source=SCRIPT, torch="2.8.0"), Options(Path(), torch=None)
    assert IssueTask.of(job, options, Path("out"), stated=True).options.torch == "2.8.0"
    assert IssueTask.of(job, options, Path("out"), stated=False).options.torch is None
