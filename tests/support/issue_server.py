"""A server on loopback that gives issues in the form of GitHub's API."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any

from loopback import listening


@contextmanager
def serving(issues: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Serve issues by their references (``owner/repo#1``), and yield the address of the API."""
    by_path = {f"/repos/{name.replace('#', '/issues/')}": data for name, data in issues.items()}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = by_path.get(self.path)
            text = json.dumps({"message": "Not Found"} if found is None else found).encode()
            self.send_response(404 if found is None else 200)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: object) -> None:
            pass

    with listening(Handler) as address:
        yield address


def issue(body: str, title: str = "wrong result", number: int = 7) -> dict[str, Any]:
    """Return an issue as GitHub's API gives it."""
    return {
        "number": number,
        "title": title,
        "body": body,
        "user": {"login": "someone"},
        "html_url": f"https://github.com/someone/project/issues/{number}",
    }
