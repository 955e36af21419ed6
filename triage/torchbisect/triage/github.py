"""The few questions that are asked of GitHub, and the one thing done there: an issue, a search; a comment.

What GitHub asks of its clients is kept: pages are followed by the ``Link`` header, a rate limit is waited out where
that is soon over, an answer of 5xx is asked again, and nothing is ever written twice.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, TypeVar

import httpx
import tenacity

from torchbisect.core.errors import InputError, MachineError
from torchbisect.core.retry import is_transient_status
from torchbisect.reports.escape import one_line
from torchbisect.reports.render.markdown import LIMIT

Result = TypeVar("Result")

API = "https://api.github.com"
#: Who the token that a workflow is given writes as.
ACTIONS_BOT = "github-actions[bot]"

_REFERENCE = re.compile(
    r"(?:https://github\.com/)?([A-Za-z0-9][A-Za-z0-9-]{0,38})/([\w.-]{1,100})(?:#|/issues/|/pull/)(\d{1,9})(?:[#?/].*)?"
)


@dataclass(frozen=True)
class Reference:
    """An issue: ``OWNER/REPO#NUMBER``."""

    owner: str
    repository: str
    number: int

    @classmethod
    def parse(cls, text: str) -> Reference:
        """Read ``OWNER/REPO#N`` or the address of an issue. Raises ``InputError`` for anything else."""
        found = _REFERENCE.fullmatch(text.strip())
        if not found or found.group(2) in (".", ".."):
            raise InputError(f"{one_line(text, 80)} is no issue: write OWNER/REPO#NUMBER, or the issue's address")
        return cls(found.group(1), found.group(2), int(found.group(3)))

    def __str__(self) -> str:
        return f"{self.owner}/{self.repository}#{self.number}"


@dataclass(frozen=True)
class Post:
    """An issue, or a comment under one.

    Attributes:
        identity: GitHub's number of a comment; of an issue its number in the repository.
        author: the login of who wrote it.
        body: its text.
        title: of an issue; empty for a comment.
        labels: of an issue.
        url: where people read it.
    """

    identity: int
    author: str
    body: str
    title: str = ""
    labels: tuple[str, ...] = ()
    url: str = ""

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Post:
        """From GitHub's JSON of an issue or a comment. Raises ``InputError`` if it is neither."""
        try:
            return cls(
                identity=int(data["number"] if "number" in data else data["id"]),
                author=str((data.get("user") or {}).get("login") or ""),
                body=str(data.get("body") or ""),
                title=str(data.get("title") or ""),
                labels=tuple(str(label["name"]) for label in data.get("labels") or ()),
                url=str(data.get("html_url") or ""),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InputError(f"this is no issue as GitHub's API gives it: {error!r:.80}") from error


class _Again(Exception):
    """Worth asking again, after ``seconds`` or when the waits say so; the text says what happened."""

    def __init__(self, what: str, seconds: float | None = None) -> None:
        super().__init__(what)
        self.seconds = seconds


class GitHub:
    """GitHub's REST API, as far as it is needed. To be closed, or used with ``with``.

    Args:
        token: sent with every request; without one public things can be read, slowly.
        base: the API's address.
        notify: told before each wait what happened and how long it is.
        sleep: waits so many seconds.
        longest: no single wait is longer than so many seconds; a rate limit that lasts longer is an error.
        tries: how often one thing is asked.
    """

    def __init__(
        self,
        token: str | None = None,
        *,
        base: str = API,
        notify: Callable[[str], None] = lambda text: None,
        sleep: Callable[[float], None] = time.sleep,
        longest: float = 120.0,
        tries: int = 5,
    ) -> None:
        headers = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}
        headers["User-Agent"] = "torchbisect"
        if token:
            headers["Authorization"] = f"Bearer {token}"
        self._base = base.rstrip("/")
        self._client = httpx.Client(headers=headers, timeout=30.0, follow_redirects=True)
        self._notify, self._sleep, self._longest, self._tries = notify, sleep, longest, tries

    def __enter__(self) -> GitHub:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def issue(self, reference: Reference) -> Post:
        """The issue itself."""
        return Post.of(self._ask("GET", f"{self._place(reference)}", str(reference)).json())

    def comments(self, reference: Reference) -> Iterator[Post]:
        """The comments under an issue, oldest first."""
        return map(Post.of, self._pages(f"{self._place(reference)}/comments", str(reference)))

    def search(self, query: str, most: int = 1000) -> Iterator[Post]:
        """Issues that GitHub's search finds; it never gives more than 1000."""
        place = f"{self._base}/search/issues"
        for count, data in enumerate(self._pages(place, f"the search {query!r}", {"q": query})):
            if count >= most:
                return
            yield Post.of(data)

    def comment_once(self, reference: Reference, body: str, first_line: str, author: str = ACTIONS_BOT) -> Post:
        """Write a comment, or edit the one that was written before: there is never a second.

        Args:
            reference: the issue.
            body: its text, which starts with ``first_line``.
            first_line: the hidden line by which it is found again.
            author: who it is written as. Others' comments are never taken for it, whatever they start with.

        Raises:
            InputError: the text is too long or lacks its first line, or the token may not write there.
        """
        if not body.startswith(first_line):
            raise InputError(f"the comment does not start with {first_line}: it could not be found again")
        if len(body.encode()) > LIMIT:
            raise InputError(f"the comment has {len(body.encode())} bytes, and GitHub takes {LIMIT}")

        def write() -> Post:
            # Asked anew before each try: the try before may have written it and only its answer was lost.
            mine = [old for old in self.comments(reference) if old.author == author and old.body.startswith(first_line)]
            if mine and mine[0].body == body:
                return mine[0]
            comments = f"{self._base}/repos/{reference.owner}/{reference.repository}/issues"
            place = f"{comments}/comments/{mine[0].identity}" if mine else f"{self._place(reference)}/comments"
            return Post.of(self._once("PATCH" if mine else "POST", place, str(reference), json={"body": body}).json())

        return self._patiently(write)

    def _place(self, reference: Reference) -> str:
        return f"{self._base}/repos/{reference.owner}/{reference.repository}/issues/{reference.number}"

    def _pages(self, place: str, what: str, parameters: Mapping[str, str] | None = None) -> Iterator[Mapping[str, Any]]:
        wanted: dict[str, str] | None = {**(parameters or {}), "per_page": "100"}
        address: str | None = place
        seen = set()
        while address and address not in seen:
            seen.add(address)
            answer = self._ask("GET", address, what, params=wanted)
            data = answer.json()
            yield from data["items"] if isinstance(data, dict) else data
            address, wanted = answer.links.get("next", {}).get("url"), None
            if address and not address.startswith(self._base + "/"):
                raise MachineError(f"GitHub sent the next page of {what} to another place: {one_line(address, 80)}")

    def _ask(self, method: str, address: str, what: str, **options: Any) -> httpx.Response:
        return self._patiently(lambda: self._once(method, address, what, **options))

    def _once(self, method: str, address: str, what: str, **options: Any) -> httpx.Response:
        try:
            answer = self._client.request(method, address, **options)
        except httpx.TransportError as error:
            raise _Again(f"GitHub can't be reached ({type(error).__name__})") from error
        if answer.is_success:
            return answer
        _refuse_limited(answer)
        if is_transient_status(answer.status_code):
            raise _Again(f"GitHub answered {answer.status_code}")
        raise _refusal(answer, what)

    def _patiently(self, ask: Callable[[], Result]) -> Result:
        """Ask until there is an answer, with growing waits or those that GitHub names."""

        def wait(state: tenacity.RetryCallState) -> float:
            error = state.outcome.exception() if state.outcome else None
            named = error.seconds if isinstance(error, _Again) else None
            return float(2 ** (state.attempt_number - 1)) if named is None else named

        def tell(state: tenacity.RetryCallState) -> None:
            error = state.outcome.exception() if state.outcome else None
            seconds = state.next_action.sleep if state.next_action else 0.0
            self._notify(f"{error}: asking again in {seconds:.0f} s")

        def hopeless(state: tenacity.RetryCallState) -> bool:
            return wait(state) > self._longest or state.attempt_number >= self._tries

        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(_Again),
            wait=wait,
            stop=hopeless,
            before_sleep=tell,
            sleep=self._sleep,
            reraise=True,
        )
        try:
            return retrying(ask)
        except _Again as error:
            after = f"; it can be asked again in {error.seconds / 60:.0f} min" if error.seconds else ""
            raise MachineError(f"{error}{after}: nothing was lost, give the same command again") from error


def _refuse_limited(answer: httpx.Response) -> None:
    """Raise ``_Again`` if the answer is about a rate limit: the primary one, or the secondary one for haste."""
    headers = answer.headers
    if answer.status_code not in (403, 429):
        return
    after, reset = headers.get("retry-after", ""), headers.get("x-ratelimit-reset", "")
    if after.isdigit():
        raise _Again("GitHub asks for a pause", float(after))
    if headers.get("x-ratelimit-remaining") == "0" and reset.isdigit():
        raise _Again("GitHub's rate limit is used up", max(float(reset) - time.time(), 1.0))
    if answer.status_code == 429 or "rate limit" in answer.text.lower():
        raise _Again("GitHub's rate limit is used up", 60.0)


def _refusal(answer: httpx.Response, what: str) -> InputError:
    """A refusal as an error that says what to do."""
    said = ""
    if "json" in answer.headers.get("content-type", ""):
        data = answer.json()
        said = one_line(str(data.get("message", "")), 120) if isinstance(data, dict) else ""
    words = {
        401: "the token is not valid: give another one",
        403: "the token has no right to do this: it needs read access to issues, and to comment write access",
        404: "there is no such issue, or the token may not see it",
        410: "it was deleted",
        422: "GitHub does not take this",
    }.get(answer.status_code, f"GitHub answered {answer.status_code}")
    return InputError(f"{what}: {words}{f' ({said})' if said else ''}")
