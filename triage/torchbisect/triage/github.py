"""A small client of GitHub's REST API: it reads issues, comments and searches, and writes one comment.

It follows GitHub's rules for clients. Pages are followed by the ``Link`` header, short rate limits are waited for,
and failed requests are repeated. No comment is ever written twice.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import httpx
import tenacity

from torchbisect.core.decode import DecodeError, decode, read_json
from torchbisect.core.errors import InputError, MachineError
from torchbisect.core.printable import one_line
from torchbisect.core.retry import is_transient_status
from torchbisect.core.scrub import scrub
from torchbisect.core.web import new_client, request
from torchbisect.reports.render.markdown import LIMIT

Result = TypeVar("Result")

API = "https://api.github.com"
#: The account that the token of a workflow writes as.
ACTIONS_BOT = "github-actions[bot]"

#: Pages of one answer. GitHub keeps 2,500 comments under an issue and finds 1,000 issues, a hundred on a page.
MOST_PAGES = 200
#: Looks for a comment that was just written, a second apart: a list of comments may lag behind.
_LOOKS = 5

_DIGITS = re.compile(r"[0-9]{1,12}")
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
        """Parse ``OWNER/REPO#N`` or the address of an issue. Raises ``InputError`` for anything else."""
        found = _REFERENCE.fullmatch(text.strip())
        if not found or found.group(2) in (".", ".."):
            raise InputError(f"{one_line(text, 80)} is not an issue: write OWNER/REPO#NUMBER, or the issue's address")
        return cls(found.group(1), found.group(2), int(found.group(3)))

    def __str__(self) -> str:
        return f"{self.owner}/{self.repository}#{self.number}"


@dataclass(frozen=True)
class _ApiUser:
    login: str | None = None


@dataclass(frozen=True)
class _ApiLabel:
    name: str


@dataclass(frozen=True)
class _ApiPost:
    """The parts of an issue or a comment in GitHub's JSON that are used."""

    number: int | None = None
    id: int | None = None
    user: _ApiUser | None = None
    body: str | None = None
    title: str | None = None
    labels: tuple[_ApiLabel, ...] | None = None
    html_url: str | None = None


@dataclass(frozen=True)
class Post:
    """An issue, or a comment under one.

    Attributes:
        identity: GitHub's id of a comment, or the number of an issue in its repository.
        author: the login of its author.
        body: its text.
        title: the title of an issue; empty for a comment.
        labels: the labels of an issue.
        url: the address for people.
    """

    identity: int
    author: str
    body: str
    title: str = ""
    labels: tuple[str, ...] = ()
    url: str = ""

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Post:
        """Return the post of an issue or comment in GitHub's JSON. Raises ``InputError`` for other JSON."""
        try:
            read = decode(_ApiPost, data, "issue")
        except DecodeError as error:
            raise InputError(f"this is not an issue in the form of GitHub's API: {error}") from error
        identity = read.number if read.number is not None else read.id
        if identity is None:
            raise InputError("this is not an issue in the form of GitHub's API: issue lacks 'number'")
        labels = tuple(label.name for label in read.labels or ())
        author = read.user.login if read.user else None
        return cls(identity, author or "", read.body or "", read.title or "", labels, read.html_url or "")


class _TryAgain(Exception):
    """A failure that another try may fix, after ``seconds`` or after the usual wait; the text says what happened."""

    def __init__(self, message: str, seconds: float | None = None) -> None:
        super().__init__(message)
        self.seconds = seconds


class _NotFound(InputError):
    """The issue or comment does not exist."""


class GitHub:
    """A client of GitHub's REST API. A context manager that closes its connections.

    Args:
        token: the token for every request. Without one, public issues can be read at a low rate limit.
        base: the API's address.
        notify: called before each wait with a text for the user.
        sleep: a function that waits a number of seconds.
        longest_wait: the limit in seconds for a single wait; a rate limit that lasts longer is an error.
        tries: the maximum number of requests for one answer.
    """

    def __init__(
        self,
        token: str | None = None,
        *,
        base: str = API,
        notify: Callable[[str], None] = lambda text: None,
        sleep: Callable[[float], None] = time.sleep,
        longest_wait: float = 120.0,
        tries: int = 5,
    ) -> None:
        headers = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}
        headers["User-Agent"] = "torchbisect"
        if token:
            headers["Authorization"] = f"Bearer {token}"
        self._base = base.rstrip("/")
        self._client = new_client(headers)
        self._notify, self._sleep, self._longest_wait, self._tries = notify, sleep, longest_wait, tries

    def __enter__(self) -> GitHub:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def issue(self, reference: Reference) -> Post:
        """Return an issue."""
        return Post.of(_json(self._request("GET", f"{self._issue_address(reference)}", str(reference))))

    def comments(self, reference: Reference) -> Iterator[Post]:
        """Yield the comments under an issue, the oldest first."""
        return map(Post.of, self._pages(f"{self._issue_address(reference)}/comments", str(reference)))

    def search(self, query: str, most: int = 1000) -> Iterator[Post]:
        """Yield the issues that GitHub's search finds; GitHub returns at most 1000."""
        place = f"{self._base}/search/issues"
        for count, data in enumerate(self._pages(place, f"the search {query!r}", {"q": query})):
            if count >= most:
                return
            yield Post.of(data)

    def comment_once(
        self,
        reference: Reference,
        body: str,
        first_line: str,
        author: str = ACTIONS_BOT,
        *,
        older_first_lines: tuple[str, ...] = (),
    ) -> Post:
        """Write a comment, or edit the one that an earlier call wrote.

        Calls at the same time leave one comment too: each looks again after it wrote, and keeps the oldest.

        Args:
            reference: the issue.
            body: the text, which starts with ``first_line``; it is written without secrets and home folders.
            first_line: the hidden line that identifies the comment.
            author: the account that the token writes as. Comments of other accounts are never edited.
            older_first_lines: the lines by which earlier versions identified it.

        Raises:
            InputError: the text is too long or lacks its first line, or the token may not write there.
        """
        body = scrub(body)
        if not body.startswith(first_line):
            raise InputError(f"the comment does not start with {first_line}: a later call could not find it")
        if len(body.encode()) > LIMIT:
            raise InputError(f"the comment has {len(body.encode())} bytes, and GitHub accepts {LIMIT}")

        comments = f"{self._base}/repos/{reference.owner}/{reference.repository}/issues/comments"
        own = partial(self._own_comments, reference, author, (first_line, *older_first_lines))

        def send(method: str, place: str) -> Post:
            return Post.of(_json(self._request_once(method, place, str(reference), json={"body": body})))

        def write() -> Post:
            # Look for the comment before each try: an earlier try may have written it and lost only the answer.
            mine = own()
            if not mine:
                mine = self._with_others(send("POST", f"{self._issue_address(reference)}/comments"), own)
            first, *others = mine
            for other in others:
                self._delete_once(f"{comments}/{other.identity}", str(reference))
            try:
                return first if first.body == body else send("PATCH", f"{comments}/{first.identity}")
            except _NotFound as error:
                raise _TryAgain(f"the comment under {reference} was deleted meanwhile") from error

        return self._with_retries(write)

    def _own_comments(self, reference: Reference, author: str, first_lines: Collection[str]) -> list[Post]:
        """Return the comments of an author that begin with one of these lines, the oldest first.

        GitHub compares logins without regard to case. A comment that only speaks of the line doesn't have it alone.
        """
        found = (old for old in self.comments(reference) if old.author.casefold() == author.casefold())
        mine = (old for old in found if old.body.partition("\n")[0].rstrip() in first_lines)
        return sorted(mine, key=lambda old: old.identity)

    def _with_others(self, written: Post, own: Callable[[], list[Post]]) -> list[Post]:
        """Return the own comments once the list has the one that was written, and so all that are older."""
        mine: list[Post] = []
        for look in range(_LOOKS):
            mine = own()
            if any(old.identity == written.identity for old in mine):
                break
            if look < _LOOKS - 1:
                self._sleep(1.0)
        return mine or [written]

    def _issue_address(self, reference: Reference) -> str:
        return f"{self._base}/repos/{reference.owner}/{reference.repository}/issues/{reference.number}"

    def _pages(self, place: str, what: str, parameters: Mapping[str, str] | None = None) -> Iterator[Mapping[str, Any]]:
        wanted: dict[str, str] | None = {**(parameters or {}), "per_page": "100"}
        address: str | None = place
        seen: set[str] = set()
        while address and address not in seen:
            if len(seen) == MOST_PAGES:
                raise MachineError(f"{what} has more than {MOST_PAGES} pages: check the address of its API")
            seen.add(address)
            answer = self._request("GET", address, what, params=wanted)
            data = _json(answer)
            items = data.get("items") if isinstance(data, dict) else data
            if not isinstance(items, list):
                raise MachineError(f"GitHub sent something else than {what}: check the address of its API")
            yield from items
            address, wanted = answer.links.get("next", {}).get("url"), None
            if address and not address.startswith(self._base + "/"):
                raise MachineError(f"the next page of {what} is at another host: {one_line(address, 80)}")

    def _request(self, method: str, address: str, what: str, **options: Any) -> httpx.Response:
        return self._with_retries(lambda: self._request_once(method, address, what, **options))

    def _delete_once(self, address: str, what: str) -> None:
        """Delete a comment, unless another run has deleted it already."""
        try:
            self._request_once("DELETE", address, what)
        except _NotFound:
            return

    def _request_once(self, method: str, address: str, what: str, **options: Any) -> httpx.Response:
        try:
            # A redirected POST would become a GET: it would write nothing and look like success.
            answer = request(self._client, method, address, follow_redirects=method == "GET", **options)
        except httpx.InvalidURL as error:
            raise InputError(f"{one_line(address, 80)} isn't an address that can be asked: correct it") from error
        except httpx.HTTPError as error:
            raise _TryAgain(f"GitHub cannot be reached ({type(error).__name__})") from error
        if answer.is_success:
            return answer
        _raise_for_rate_limit(answer)
        if is_transient_status(answer.status_code):
            raise _TryAgain(f"GitHub answered {answer.status_code}")
        refusal = _refusal(answer, what)
        raise _NotFound(str(refusal)) if answer.status_code in (404, 410) else refusal

    def _with_retries(self, ask: Callable[[], Result]) -> Result:
        """Call ``ask`` until it succeeds, with growing waits or the waits that GitHub names."""

        def wait(state: tenacity.RetryCallState) -> float:
            error = state.outcome.exception() if state.outcome else None
            named = error.seconds if isinstance(error, _TryAgain) else None
            return float(2 ** (state.attempt_number - 1)) if named is None else named

        def tell(state: tenacity.RetryCallState) -> None:
            error = state.outcome.exception() if state.outcome else None
            seconds = state.next_action.sleep if state.next_action else 0.0
            self._notify(f"{error}: next try in {seconds:.0f} s")

        def give_up(state: tenacity.RetryCallState) -> bool:
            return wait(state) > self._longest_wait or state.attempt_number >= self._tries

        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(_TryAgain),
            wait=wait,
            stop=give_up,
            before_sleep=tell,
            sleep=self._sleep,
            reraise=True,
        )
        try:
            return retrying(ask)
        except _TryAgain as error:
            after = f"; it ends in {error.seconds / 60:.0f} min" if error.seconds else ""
            raise MachineError(f"{error}{after}: nothing was lost, run the same command again") from error


def _json(answer: httpx.Response) -> Any:
    try:
        return read_json(answer.content)
    except DecodeError as error:
        raise MachineError(f"GitHub sent something that is no answer of its API: {error}; try again later") from error


def _raise_for_rate_limit(answer: httpx.Response) -> None:
    """Raise ``_TryAgain`` if the answer reports a rate limit, the primary one or a secondary one."""
    headers = answer.headers
    if answer.status_code not in (403, 429):
        return
    after, reset = headers.get("retry-after", ""), headers.get("x-ratelimit-reset", "")
    if _DIGITS.fullmatch(after):
        raise _TryAgain("GitHub asks for a pause", float(after))
    if headers.get("x-ratelimit-remaining") == "0" and _DIGITS.fullmatch(reset):
        raise _TryAgain("GitHub's rate limit is used up", max(float(reset) - time.time(), 1.0))
    if answer.status_code == 429 or "rate limit" in answer.text.lower():
        raise _TryAgain("GitHub's rate limit is used up", 60.0)


def _refusal(answer: httpx.Response, what: str) -> InputError:
    """Turn a refusal into an error that says what to do."""
    said, data = "", None
    if "json" in answer.headers.get("content-type", ""):
        with suppress(DecodeError):
            data = read_json(answer.content)
        said = one_line(str(data.get("message", "")), 120) if isinstance(data, dict) else ""
    moved = "it was moved, or its repository was renamed: name it by its new address"
    words = {
        301: moved,
        307: moved,
        308: moved,
        401: "the token is not valid: give another one",
        403: "the token lacks a permission: it needs read access to issues, and write access to comment",
        404: "there is no such issue, or the token may not see it",
        410: "it was deleted",
        422: "GitHub rejects the request",
    }.get(answer.status_code, f"GitHub answered {answer.status_code}")
    return InputError(f"{what}: {words}{f' ({said})' if said else ''}")
