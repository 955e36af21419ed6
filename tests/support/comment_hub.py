"""A server on loopback that stores issues and comments like GitHub."""

from __future__ import annotations

import json
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, urlsplit


class Hub:
    """The state of the server: an issue, its comments, and the errors of the next answers."""

    def __init__(self) -> None:
        self.comments: list[dict[str, Any]] = []
        self.issue: dict[str, Any] = {"number": 12, "title": "t", "body": "b", "user": {"login": "ann"}, "labels": []}
        self.errors: list[tuple[int, dict[str, str], str]] = []
        self.lose_answers = 0
        self.requests: list[str] = []
        self.said = 0
        self.before_answer: Callable[[str], None] = lambda request: None
        self.tokens: set[str | None] = set()
        self.base = ""

    def say(self, login: str, body: str) -> dict[str, Any]:
        self.said += 1
        comment = {"id": 1000 + self.said, "user": {"login": login}, "body": body, "html_url": "http://c/"}
        self.comments.append(comment)
        return comment


class Handler(BaseHTTPRequestHandler):
    """GitHub's answers, with three items a page."""

    hub: Hub

    def do_GET(self) -> None:
        self.answer("GET")

    def do_POST(self) -> None:
        self.answer("POST")

    def do_PATCH(self) -> None:
        self.answer("PATCH")

    def do_DELETE(self) -> None:
        self.answer("DELETE")

    def log_message(self, *arguments: Any) -> None:
        pass

    def answer(self, method: str) -> None:
        sent = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        split = urlsplit(self.path)
        self.hub.requests.append(f"{method} {split.path}")
        self.hub.before_answer(f"{method} {split.path}")
        self.hub.tokens.add(self.headers.get("Authorization"))
        if self.hub.errors:
            status, headers, text = self.hub.errors.pop(0)
            return self.send(status, {"message": text}, headers)
        body = json.loads(sent)["body"] if sent else ""
        path = split.path
        if method == "DELETE":
            found = [c for c in self.hub.comments if path.endswith(f"/comments/{c['id']}")]
            self.hub.comments[:] = [c for c in self.hub.comments if c not in found]
            return self.send(204 if found else 404, {"message": "Not Found"})
        if method == "PATCH":
            comment = next((c for c in self.hub.comments if path.endswith(f"/comments/{c['id']}")), None)
            if comment is None:
                return self.send(404, {"message": "Not Found"})
            comment["body"] = body
            return self.send(200, comment)
        if method == "POST":
            made = self.hub.say("github-actions[bot]", body)
            if self.hub.lose_answers:
                self.hub.lose_answers -= 1
                return self.send(502, {})
            return self.send(201, made)
        if path == "/repos/pytorch/pytorch/issues/12":
            return self.send(200, self.hub.issue)
        if path.endswith("/comments"):
            return self.page(self.hub.comments, split.query)
        if path == "/search/issues":
            return self.page([{**self.hub.issue, "number": n} for n in range(7)], split.query, wrapped=True)
        return self.send(404, {"message": "Not Found"})

    def page(self, items: list[dict[str, Any]], query: str, wrapped: bool = False) -> None:
        number = int(parse_qs(query).get("page", ["1"])[0])
        found = items[3 * number - 3 : 3 * number]
        more = f'<{self.hub.base}{urlsplit(self.path).path}?page={number + 1}&q=x>; rel="next"'
        headers = {"Link": more} if len(items) > 3 * number else {}
        self.send(200, {"items": found} if wrapped else found, headers)

    def send(self, status: int, data: Any, headers: dict[str, str] | None = None) -> None:
        text = json.dumps(data).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        if status != 204:
            self.wfile.write(text)


class Waits(list[float]):
    """The waits that the client asked for, in seconds."""
