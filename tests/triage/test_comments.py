"""The one comment under an issue, against a local server that stores issues and comments like GitHub."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from comment_hub import Handler, Hub, Waits
from loopback import listening

from torchbisect.triage.github import GitHub, Reference

PLACE = Reference("pytorch", "pytorch", 12)


def test_a_second_call_edits_the_comment(hub: Hub, github: GitHub) -> None:
    for number in range(5):
        hub.say("ann", f"words {number}")
    first = github.comment_once(PLACE, "<!-- m -->\none", "<!-- m -->")
    again = github.comment_once(PLACE, "<!-- m -->\ntwo", "<!-- m -->")
    assert first.identity == again.identity
    assert [c["body"] for c in hub.comments[5:]] == ["<!-- m -->\ntwo"]
    hub.requests.clear()
    github.comment_once(PLACE, "<!-- m -->\ntwo", "<!-- m -->")
    assert not [line for line in hub.requests if not line.startswith("GET")]


def test_a_comment_has_no_secret(hub: Hub, github: GitHub) -> None:
    token = "ghp_" + "a1B2" * 9
    body = f"<!-- m -->\nfetched https://ann:hunter2seven@host.example/x with {token} in /home/ann/x"
    github.comment_once(PLACE, body, "<!-- m -->")
    assert [c["body"] for c in hub.comments] == ["<!-- m -->\nfetched https://host.example/x with **** in ~/x"]


@pytest.mark.parametrize("count", [2, 4])
def test_calls_at_the_same_time_leave_one_comment(hub: Hub, count: int) -> None:
    """All of them look before any of them writes."""
    hub.say("ann", "words")
    together, looked = threading.Barrier(count, timeout=30), threading.local()

    def wait_for_all(request: str) -> None:
        # A connection is served by one thread, so each run waits once.
        if request.startswith("POST") and not hasattr(looked, "once"):
            looked.once = True
            together.wait()

    hub.before_answer = wait_for_all

    def call(number: int) -> None:
        with GitHub("secret", base=hub.base) as github:
            github.comment_once(PLACE, f"<!-- m -->\n{number}", "<!-- m -->")

    threads = [threading.Thread(target=call, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert [line for line in hub.requests if line.startswith("POST")] != []
    assert len(hub.comments) == 2
    assert hub.comments[1]["body"].startswith("<!-- m -->\n")


def test_two_comments_of_an_earlier_version_become_one(hub: Hub, github: GitHub) -> None:
    for login, line in [("github-actions[bot]", "old"), ("ann", "old"), ("github-actions[bot]", "m")]:
        hub.say(login, f"<!-- {line} -->\nwords")
    github.comment_once(PLACE, "<!-- m -->\nnew", "<!-- m -->", older_first_lines=("<!-- old -->",))
    assert [(c["user"]["login"], c["body"]) for c in hub.comments] == [
        ("github-actions[bot]", "<!-- m -->\nnew"),
        ("ann", "<!-- old -->\nwords"),
    ]


def test_a_strangers_comment_is_not_edited(hub: Hub, github: GitHub) -> None:
    hub.say("mallory", "<!-- m -->\nmine")
    github.comment_once(PLACE, "<!-- m -->\none", "<!-- m -->")
    assert [c["body"] for c in hub.comments] == ["<!-- m -->\nmine", "<!-- m -->\none"]


@pytest.mark.parametrize(
    "body",
    [
        "> <!-- m -->\n> x",
        "```\n<!-- m -->\n```",
        "<!-- m --> is its first line",
        "\n<!-- m -->\nx",
        "<!-- m --><!-- m -->",
    ],
    ids=["quote", "code", "words", "second", "twice"],
)
def test_a_comment_of_the_same_account_that_quotes_the_line_is_not_edited(hub: Hub, github: GitHub, body: str) -> None:
    """Every workflow of a repository writes as the same account."""
    hub.say("github-actions[bot]", body)
    github.comment_once(PLACE, "<!-- m -->\none", "<!-- m -->")
    assert [c["body"] for c in hub.comments] == [body, "<!-- m -->\none"]


@pytest.mark.parametrize(
    ("login", "old"), [("GitHub-Actions[bot]", "<!-- m -->\nold"), ("github-actions[bot]", "<!-- m -->\r\nold")]
)
def test_the_own_comment_as_github_may_write_it(hub: Hub, github: GitHub, login: str, old: str) -> None:
    hub.say(login, old)
    github.comment_once(PLACE, "<!-- m -->\nnew", "<!-- m -->")
    assert [c["body"] for c in hub.comments] == ["<!-- m -->\nnew"]


def test_calls_at_the_same_time_where_the_list_of_comments_lags_behind(hub: Hub) -> None:
    lag = 0.7
    made: dict[int, float] = {}

    class Lagging(Handler):
        def page(self, items: list[dict[str, Any]], query: str, wrapped: bool = False) -> None:
            now = time.monotonic()
            seen = [item for item in items if now - made.setdefault(item["id"], now) >= lag]
            super().page(seen, query, wrapped)

    def call(number: int) -> None:
        with GitHub("secret", base=hub.base) as github:
            github.comment_once(PLACE, f"<!-- m -->\n{number}", "<!-- m -->")

    with listening(type("Bound", (Lagging,), {"hub": hub})) as hub.base:
        threads = [threading.Thread(target=call, args=(number,)) for number in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert len([line for line in hub.requests if line.startswith("POST")]) == 3
    assert len(hub.comments) == 1


def test_a_comment_that_is_deleted_while_it_is_edited_is_written_again(hub: Hub, github: GitHub, waits: Waits) -> None:
    hub.say("github-actions[bot]", "<!-- m -->\nold")

    def delete(request: str) -> None:
        if request.startswith("PATCH"):
            hub.comments.clear()

    hub.before_answer = delete
    github.comment_once(PLACE, "<!-- m -->\nnew", "<!-- m -->")
    assert [c["body"] for c in hub.comments] == ["<!-- m -->\nnew"]
    assert waits == [1.0]
