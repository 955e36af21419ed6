"""A range of nightlies that no single variant covers, from pages and files on an HTTP server."""

from __future__ import annotations

import datetime
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from urllib.parse import unquote

import pytest
from loopback import listening

from torchbisect.bisect.sources import nightly
from torchbisect.bisect.sources.listing import Listing
from torchbisect.bisect.sources.nightly import UrlProbe
from torchbisect.containers.index.pages import project_page
from torchbisect.containers.python.interpreter import Interpreter
from torchbisect.pipeline.variant_ranges import NightlyFinder, NightlySource

FIRST, LAST = datetime.date(2026, 3, 1), datetime.date(2026, 5, 30)
#: The last day of cu128; cu126 has later days.
END = datetime.date(2026, 4, 7)


@dataclass
class Index:
    """An index with days by variant; the days before ``listed`` are on no page."""

    days: dict[str, list[datetime.date]]
    listed: datetime.date
    python: str
    url: str = ""
    asked: list[str] = field(default_factory=list)

    def name(self, day: datetime.date, variant: str) -> str:
        return f"torch-2.13.0.dev{day:%Y%m%d}+{variant}-{self.python}-{self.python}-manylinux_2_28_x86_64.whl"

    def answer(self, path: str) -> bytes | None:
        variant, _, rest = unquote(path).removeprefix("/nightly/").partition("/")
        days = self.days.get(variant, [])
        if rest == "torch/":
            names = [self.name(day, variant) for day in days if day >= self.listed]
            page = "".join(f'<a href="/nightly/{variant}/{name}">{name}</a>\n' for name in names)
            return page.encode() if names else None  # an empty page is an error of the server
        return b"wheel" if rest in {self.name(day, variant) for day in days} else None


@pytest.fixture
def index() -> Iterator[Index]:
    days = [FIRST + datetime.timedelta(days=number) for number in range((LAST - FIRST).days + 1)]
    abi = Interpreter.of(sys.executable).abi
    variants = {"cu128": [day for day in days if day <= END], "cu126": days, "cpu": days[:5]}
    made = Index(variants, datetime.date(2026, 4, 1), abi)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            made.asked.append(f"{self.command} {self.path}")
            body = made.answer(self.path)
            self.send_response(200 if body is not None else 404)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(body or b"")))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body or b"")

        do_HEAD = do_GET

        def log_message(self, *_: object) -> None:
            """Keep the test's output clean."""

    with listening(Handler) as address:
        made.url = f"{address}/nightly"
        yield made


def found(
    index: Index, variant: str, first: datetime.date, last: datetime.date
) -> tuple[Listing, dict[str, NightlySource]]:
    interpreter = Interpreter.of(sys.executable)
    page = project_page(nightly.index_url(variant, index.url), "torch")
    listed = nightly.nightlies(page.packages if page else [], interpreter, variant)
    with UrlProbe() as probe:
        finder = NightlyFinder(NightlySource(interpreter, variant), index.url, probe.exists, print, others=False)
        return finder.find(first, last, listed)


def test_a_variant_with_both_ends_is_used_alone(index: Index) -> None:
    listing, elsewhere = found(index, "cu126", FIRST, LAST)
    assert [build.date for build in listing.builds] == index.days["cu126"]
    assert not elsewhere
    assert listing.notice is None
    assert not any("cu128" in line for line in index.asked)


@pytest.mark.slow
def test_a_variant_that_ends_is_continued_by_one_that_shares_a_day(index: Index) -> None:
    listing, elsewhere = found(index, "cu128", FIRST, LAST)
    days = [build.date for build in listing.builds]
    assert days == [*index.days["cu128"], *index.days["cu126"][index.days["cu126"].index(END) :]]
    assert days.count(END) == 2
    own = [build for build in listing.builds if (build.wheel or "") not in elsewhere]
    assert [build.date for build in own] == index.days["cu128"]
    assert {source.variant for source in elsewhere.values()} == {"cu126"}
    assert listing.notice is not None
    assert "the range is split" in listing.notice
    assert "2026-04-07 to 2026-05-30 cu126" in listing.notice


@pytest.mark.slow
def test_a_range_ends_where_no_variant_has_nightlies(index: Index) -> None:
    listing, elsewhere = found(index, "cpu", FIRST, LAST)
    assert [build.date for build in listing.builds] == index.days["cpu"]
    assert not elsewhere


def test_a_single_day_of_another_variant(index: Index) -> None:
    listing, elsewhere = found(index, "cu128", LAST, LAST)
    assert [build.version for build in listing.builds] == ["2.13.0.dev20260530+cu126"]
    assert len(elsewhere) == 1
