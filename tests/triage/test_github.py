"""The client of GitHub's API, against a local server that stores issues and comments like GitHub."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from comment_hub import Hub, Waits

from torchbisect.core.errors import InputError, MachineError
from torchbisect.reports import files
from torchbisect.reports.model.report import Report
from torchbisect.reports.render.markdown import LIMIT
from torchbisect.triage import github_actions
from torchbisect.triage.github import GitHub, Reference

PLACE = Reference("pytorch", "pytorch", 12)


@pytest.mark.parametrize(
    "text",
    [
        "pytorch/pytorch#12",
        "https://github.com/pytorch/pytorch/issues/12",
        "pytorch/pytorch/pull/12",
        " https://github.com/pytorch/pytorch/issues/12#issuecomment-5 ",
    ],
)
def test_references(text: str) -> None:
    assert Reference.parse(text) == PLACE


@pytest.mark.parametrize(
    "text", ["", "12", "pytorch#12", "a/b#", "a/../b#1", "https://example.org/a/b/issues/1", "a/..#1"]
)
def test_other_texts_are_not_references(text: str) -> None:
    with pytest.raises(InputError, match="OWNER/REPO#NUMBER"):
        Reference.parse(text)


def test_an_issue(hub: Hub, github: GitHub) -> None:
    hub.issue["labels"] = [{"name": "oncall: pt2"}]
    post = github.issue(PLACE)
    assert (post.identity, post.author, post.title, post.body, post.labels) == (12, "ann", "t", "b", ("oncall: pt2",))
    assert hub.tokens == {"Bearer secret"}


def test_all_pages_are_read(hub: Hub, github: GitHub) -> None:
    for number in range(8):
        hub.say("ann", str(number))
    assert [post.body for post in github.comments(PLACE)] == list("01234567")
    assert [post.identity for post in github.search("is:issue")] == list(range(7))
    assert len(list(github.search("is:issue", most=2))) == 2


def test_a_list_of_comments_without_end(hub: Hub, github: GitHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torchbisect.triage.github.MOST_PAGES", 4)
    for number in range(30):
        hub.say("ann", str(number))
    with pytest.raises(MachineError, match="#12 has more than 4 pages"):
        list(github.comments(PLACE))


@pytest.mark.parametrize("status", [301, 307, 308])
def test_an_issue_that_was_moved_gets_no_comment(hub: Hub, github: GitHub, status: int) -> None:
    def move(request: str) -> None:
        if request.startswith("POST"):
            hub.errors = [(status, {"Location": f"{hub.base}/repos/a/b/issues/3/comments"}, "Moved Permanently")]

    hub.before_answer = move
    with pytest.raises(InputError, match="it was moved"):
        github.comment_once(PLACE, "<!-- m -->\nnew", "<!-- m -->")


def test_a_lost_answer_does_not_write_twice(hub: Hub, github: GitHub, waits: Waits) -> None:
    hub.lose_answers = 1
    github.comment_once(PLACE, "<!-- m -->\none", "<!-- m -->")
    assert [c["body"] for c in hub.comments] == ["<!-- m -->\none"]
    assert waits == [1.0]


def test_server_errors_are_retried(hub: Hub, github: GitHub, waits: Waits) -> None:
    hub.errors = [(502, {}, ""), (503, {}, ""), (500, {}, "")]
    assert github.issue(PLACE).title == "t"
    assert waits == [1.0, 2.0, 4.0]


def test_a_server_that_stays_down_is_a_machine_error(hub: Hub, github: GitHub) -> None:
    hub.errors = [(502, {}, "")] * 9
    with pytest.raises(MachineError, match="GitHub answered 502: nothing was lost"):
        github.issue(PLACE)


def test_an_unreachable_server_is_a_machine_error(waits: Waits) -> None:
    with GitHub(base="http://127.0.0.1:9", sleep=waits.append) as github, pytest.raises(MachineError, match="reached"):
        github.issue(PLACE)


def test_a_short_rate_limit_is_waited_for(hub: Hub, github: GitHub, waits: Waits) -> None:
    reset = str(int(time.time()) + 30)
    hub.errors = [
        (403, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": reset}, "API rate limit exceeded"),
        (429, {"retry-after": "7"}, "slow down"),
        (403, {}, "You have exceeded a secondary rate limit"),
    ]
    assert github.issue(PLACE).title == "t"
    assert 25 <= waits[0] <= 30
    assert waits[1:] == [7.0, 60.0]


def test_a_long_rate_limit_is_an_error(hub: Hub, github: GitHub, waits: Waits) -> None:
    reset = str(int(time.time()) + 1800)
    hub.errors = [(403, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": reset}, "API rate limit exceeded")]
    with pytest.raises(MachineError, match="rate limit is used up; it ends in 30 min"):
        github.issue(PLACE)
    assert waits == []


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (401, "token is not valid"),
        (403, "lacks a permission"),
        (404, "no such issue"),
        (410, "deleted"),
        (422, "rejects the request"),
    ],
)
def test_refusals_say_what_to_do(hub: Hub, github: GitHub, waits: Waits, status: int, words: str) -> None:
    hub.errors = [(status, {}, "Bad \x1b[31mthing")]
    with pytest.raises(InputError, match=words) as caught:
        github.issue(PLACE)
    assert "pytorch/pytorch#12" in str(caught.value)
    assert "\x1b" not in str(caught.value)
    assert waits == []


def test_pages_at_another_host_are_not_followed(hub: Hub, github: GitHub) -> None:
    for number in range(4):
        hub.say("ann", str(number))
    hub.base = "http://evil.example"
    with pytest.raises(MachineError, match="at another host"):
        list(github.comments(PLACE))


def test_an_invalid_comment_is_not_sent(hub: Hub, github: GitHub) -> None:
    with pytest.raises(InputError, match="bytes"):
        github.comment_once(PLACE, "<!-- m -->" + "é" * LIMIT, "<!-- m -->")
    with pytest.raises(InputError, match="does not start"):
        github.comment_once(PLACE, "x", "<!-- m -->")
    assert hub.requests == []


def step(*arguments: str, **environment: str) -> Result:
    """Run a command of the workflow in this process."""
    return CliRunner().invoke(github_actions.main, arguments, env=environment, catch_exceptions=False)


def test_the_steps_of_the_workflow(hub: Hub, whole: Report, tmp_path: Path) -> None:
    body = "```python\nimport torch\nimport einops\ntorch.compile(abs)(torch.ones(1))\n```\ntorch==2.8.0\n@octocat"
    (tmp_path / "issue.json").write_text(json.dumps({**hub.issue, "body": body}))
    out = tmp_path / "out"
    done = step("read", str(tmp_path / "issue.json"), str(out), GITHUB_OUTPUT=str(tmp_path / "outputs"))
    assert done.exit_code == 0, done.output
    assert (tmp_path / "outputs").read_text() == (
        f"runnable=true\ndigest={sha256(body.encode()).hexdigest()}\n"
        f"script-digest={sha256((out / 'repro.py').read_bytes()).hexdigest()}\n"
        "torch=2.8.0\ndevice=cpu\npackages=einops\n"
    )
    assert "torch.compile(abs)" in (out / "repro.py").read_text()

    files.write(replace(whole, reason="@octocat"), out)
    (out / "report.md").write_text("tampered with")
    done = step("comment", "pytorch/pytorch#12", str(out), "--api", hub.base, GH_TOKEN="t0ken")
    assert done.exit_code == 0, done.output
    assert hub.tokens == {"Bearer t0ken"}
    (comment,) = hub.comments
    assert comment["body"].startswith("<!-- torchbisect:report -->")
    assert "tampered" not in comment["body"]


def test_the_report_takes_the_place_of_the_reply(hub: Hub, whole: Report, tmp_path: Path) -> None:
    (tmp_path / "issue.json").write_text(json.dumps(hub.issue))
    assert step("comment", "pytorch/pytorch#12", str(tmp_path), "--api", hub.base).exit_code == 0
    files.write(whole, tmp_path)
    assert step("comment", "pytorch/pytorch#12", str(tmp_path), "--api", hub.base).exit_code == 0
    (comment,) = hub.comments
    assert "Describe the bug" in comment["body"]


def test_a_comment_says_that_the_text_was_edited(hub: Hub, whole: Report, tmp_path: Path) -> None:
    """A report about a text that was edited during the run; a reply to one that was edited before."""
    (tmp_path / "issue.json").write_text(json.dumps(hub.issue))
    labelled = sha256(b"b").hexdigest()
    command = ("comment", "pytorch/pytorch#12", str(tmp_path), "--api", hub.base, "--digest")
    files.write(whole, tmp_path)
    assert step(*command, labelled).exit_code == 0
    assert "edited" not in hub.comments[0]["body"]
    hub.issue["body"] = "something else"
    assert step(*command, labelled).exit_code == 0
    (comment,) = hub.comments
    lines = comment["body"].split("\n")
    assert lines[0] == "<!-- torchbisect:report -->"
    assert lines[1].startswith("<!-- torchbisect:signature")
    assert "edited after this was asked for" in lines[2]
    assert labelled[:12] in lines[2]
    (tmp_path / "report.json").unlink()
    assert step(*command, sha256(b"a").hexdigest()).exit_code == 0
    (comment,) = hub.comments
    assert "so nothing was run" in comment["body"]
    assert "Missing" not in comment["body"]


def test_a_title_that_was_edited_after_the_label_counts_for_nothing(hub: Hub, tmp_path: Path) -> None:
    """It may state the torch that is installed."""
    text = "```python\nimport torch\ntorch.compile(abs)(torch.ones(1))\n```"
    seen = {**hub.issue, "title": "fails with torch==2.8.0", "body": text}
    (tmp_path / "event.json").write_text(json.dumps({"action": "labeled", "issue": seen}))
    (tmp_path / "issue.json").write_text(json.dumps({**seen, "title": "fails with torch==2.1.0"}))
    done = step("read", str(tmp_path / "issue.json"), str(tmp_path / "out"), "--event", str(tmp_path / "event.json"))
    assert done.exit_code == 0, done.output
    assert "runnable: true" in done.output
    assert "torch: 2.8.0" in done.output


@pytest.mark.parametrize("event", ['{"action": "labeled"}', '{"action": "labeled", "issue": null}', "", "[" * 5000])
def test_an_event_of_a_label_without_its_issue_runs_nothing(hub: Hub, tmp_path: Path, event: str) -> None:
    (tmp_path / "event.json").write_text(event)
    (tmp_path / "issue.json").write_text(json.dumps({**hub.issue, "body": "```python\nimport torch\n```"}))
    done = step("read", str(tmp_path / "issue.json"), str(tmp_path / "out"), "--event", str(tmp_path / "event.json"))
    assert done.exit_code == 2
    assert not (tmp_path / "out").exists()


def test_the_outcome_of_a_run(whole: Report, tmp_path: Path) -> None:
    files.write(whole, tmp_path / "out")
    places = {"GITHUB_OUTPUT": str(tmp_path / "outputs"), "GITHUB_STEP_SUMMARY": str(tmp_path / "summary")}
    assert step("outcome", str(tmp_path / "out"), "--status", "0", **places).exit_code == 0
    assert (tmp_path / "outputs").read_text() == f"status=0\nverdict=mismatch\nreport={tmp_path / 'out'}\n"
    assert (tmp_path / "summary").read_text() == (tmp_path / "out" / "report.md").read_text()


def test_a_step_with_nothing_to_run(hub: Hub, tmp_path: Path) -> None:
    (tmp_path / "issue.json").write_text(json.dumps(hub.issue))
    done = step("read", str(tmp_path / "issue.json"), str(tmp_path))
    assert "runnable: false" in done.output
    assert not (tmp_path / "repro.py").exists()
    (tmp_path / "reply.md").write_text("tampered with")
    done = step("comment", "pytorch/pytorch#12", str(tmp_path), "--api", hub.base)
    assert done.exit_code == 0, done.output
    assert hub.comments[0]["body"].startswith("<!-- torchbisect:report -->\nThe script of this issue cannot be run yet")


def test_a_step_with_bad_input(tmp_path: Path) -> None:
    (tmp_path / "issue.json").write_text("{")
    command = [
        sys.executable,
        "-m",
        "torchbisect.triage.github_actions",
        "read",
        str(tmp_path / "issue.json"),
        str(tmp_path),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("torchbisect: ")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("text", ["[]", '{"number": "x"}', '{"number": 1, "labels": [3]}'])
def test_other_json_is_not_an_issue(tmp_path: Path, text: str) -> None:
    (tmp_path / "issue.json").write_text(text)
    result = step("read", str(tmp_path / "issue.json"), str(tmp_path))
    assert result.exit_code == 2
    assert "not an issue in the form of GitHub's API" in result.output
