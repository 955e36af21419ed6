"""Pages of real indexes over a real socket: both formats, every form of link, and every failure."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from torchbisect.containers.index.indexes import Indexes
from torchbisect.containers.index.pages import JSON, packages, project_page
from torchbisect.core.errors import IndexUnreachable
from torchbisect.core.retry import RetryPolicy

SHORT = RetryPolicy(first_wait=0.01, longest_wait=0.02, total=0.1)
NIGHTLY = """<!DOCTYPE html>
<html>
  <body>
    <h1>Links for torch</h1>
    <a href="https://other.example/whl/nightly/cpu/torch-2.15.0.dev20260816%2Bcpu-cp312-cp312-manylinux_2_28_x86_64.whl"
       data-upload-time="2026-08-16T09:00:00Z">torch-2.15.0.dev20260816+cpu-cp312-cp312-manylinux_2_28_x86_64.whl</a><br/>
    <a href="/whl/nightly/cpu/torch-2.15.0.dev20260817%2Bcpu-cp312-cp312-manylinux_2_28_x86_64.whl#sha256=ab"
       >torch-2.15.0.dev20260817+cpu-cp312-cp312-manylinux_2_28_x86_64.whl</a><br/>
  </body>
</html>
<!--TIMESTAMP 1755000000-->"""

Serve = Callable[[Callable[[str], Any]], Any]


def test_a_page_in_the_form_of_pytorchs_index(serve: Serve, answer: Any) -> None:
    server = serve(lambda path: answer(body=NIGHTLY.encode()))
    page = project_page(f"{server.url}/whl/nightly/cpu", "Torch")
    assert page is not None
    assert server.asked == ["/whl/nightly/cpu/torch/"]
    assert [package.version for package in page.packages] == ["2.15.0.dev20260816+cpu", "2.15.0.dev20260817+cpu"]
    assert [package.url for package in page.packages] == [
        "https://other.example/whl/nightly/cpu/torch-2.15.0.dev20260816%2Bcpu-cp312-cp312-manylinux_2_28_x86_64.whl",
        f"{server.url}/whl/nightly/cpu/torch-2.15.0.dev20260817%2Bcpu-cp312-cp312-manylinux_2_28_x86_64.whl",
    ]


def test_a_page_in_json(serve: Serve, answer: Any) -> None:
    file = {"filename": "torch-2.8.0-cp311-none-linux_x86_64.whl", "url": "../../t.whl", "hashes": {}, "yanked": "bad"}
    told = {"meta": {"api-version": "1.1"}, "name": "torch", "files": [file]}
    server = serve(lambda path: answer(body=json.dumps(told).encode(), kind=JSON))
    page = project_page(f"{server.url}/simple/", "torch")
    assert page is not None
    assert page.packages[0].url == f"{server.url}/t.whl"
    assert page.packages[0].is_yanked


@pytest.mark.parametrize(
    "address", ["file:///etc/passwd", "FILE:///etc/passwd", "//./etc/passwd", "ftp://h/x", "t.whl"]
)
def test_a_page_of_another_machine_names_no_file_of_this_one(serve: Serve, answer: Any, address: str) -> None:
    name = "torch-2.8.0-cp311-none-linux_x86_64.whl"
    file = {"filename": name, "url": address, "hashes": {}}
    told = json.dumps({"meta": {"api-version": "1.1"}, "name": "torch", "files": [file]})
    in_json = serve(lambda path: answer(body=told.encode(), kind=JSON))
    in_html = serve(lambda path: answer(body=f'<a href="{address}">{name}</a>'.encode()))
    for server in (in_json, in_html):
        found = packages(Indexes(f"{server.url}/simple", (), (f"{server.url}/links",)), "torch", retry=SHORT)
        assert all(package.url.startswith("http://") for package in found)
        assert bool(found) == (address in ("t.whl", "//./etc/passwd"))


def test_a_page_is_found_behind_a_redirect(serve: Serve, answer: Any) -> None:
    def told(path: str) -> Any:
        if path.startswith("/old"):
            return answer(301, headers=(("Location", "/new/torch/"),))
        return answer(body=b'<a href="torch-1.0-py3-none-any.whl">torch-1.0-py3-none-any.whl</a>')

    server = serve(told)
    page = project_page(f"{server.url}/old", "torch")
    assert page is not None
    assert page.packages[0].url == f"{server.url}/new/torch/torch-1.0-py3-none-any.whl"


def test_an_index_without_the_project_gives_none(serve: Serve, answer: Any, tmp_path: Path) -> None:
    server = serve(lambda path: answer(404))
    assert project_page(server.url, "torch") is None
    assert project_page(tmp_path.as_uri(), "torch") is None


@pytest.mark.parametrize("trouble", ["503", "429", "cut", "not json"])
def test_a_temporary_failure_costs_a_reported_wait(serve: Serve, answer: Any, trouble: str) -> None:
    good = answer(body=b'<a href="torch-1.0-py3-none-any.whl">torch-1.0-py3-none-any.whl</a>')
    bad = {
        "503": answer(503),
        "429": answer(429),
        "cut": answer(body=good.body[:20], length=len(good.body)),
        "not json": answer(body=b"<html>", kind=JSON),
    }[trouble]
    answers = [bad, bad, good]
    said: list[str] = []
    server = serve(lambda path: answers.pop(0))
    page = project_page(server.url, "torch", notify=said.append, retry=RetryPolicy(0.01, 0.01, 30.0))
    assert page is not None
    assert len(page.packages) == 1
    assert len(said) == 2
    assert all("next try" in line for line in said)


def test_an_index_that_stays_down_is_a_machine_error(serve: Serve, answer: Any) -> None:
    server = serve(lambda path: answer(500))
    url = server.url.replace("http://", "http://user:secret@")
    with pytest.raises(IndexUnreachable, match="--index-url") as caught:
        project_page(url, "torch", retry=SHORT)
    assert "secret" not in str(caught.value)
    assert len(server.asked) > 1


def test_a_port_without_a_server() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port = bound.getsockname()[1]
    with pytest.raises(IndexUnreachable, match="did not answer"):
        project_page(f"http://127.0.0.1:{port}/simple", "torch", retry=SHORT)


@pytest.mark.parametrize(("status", "words"), [(401, "name and password"), (403, "name and password"), (400, "400")])
def test_a_refusal_is_not_retried(serve: Serve, answer: Any, status: int, words: str) -> None:
    server = serve(lambda path: answer(status))
    with pytest.raises(IndexUnreachable, match=words):
        project_page(server.url, "torch")
    assert len(server.asked) == 1


@pytest.mark.parametrize("kind", ["image/png", "application/json"])
def test_other_content_is_not_an_empty_page(serve: Serve, answer: Any, kind: str) -> None:
    server = serve(lambda path: answer(body=b"{}", kind=kind))
    with pytest.raises(IndexUnreachable, match="does not send a page"):
        project_page(server.url, "torch")


def test_an_invalid_address() -> None:
    with pytest.raises(IndexUnreachable, match="correct it"):
        project_page("gopher://x/simple", "torch")


def test_files_of_all_places_are_combined(tree: Any, serve_tree: Any, tmp_path: Path) -> None:
    tree.add("torch", "2.1.0")
    tree.add("torch", "2.2.0+cpu")
    served = serve_tree(tree)
    links = tmp_path / "links"
    links.mkdir()
    for name in ("torch-2.3.0-py3-none-any.whl", "torchvision-1.0-py3-none-any.whl", "notes.txt"):
        (links / name).touch()
    page = tmp_path / "links.html"
    page.write_text('<a href="torch-2.4.0-py3-none-any.whl">torch-2.4.0-py3-none-any.whl</a><a href="x">other</a>')
    places = (str(links), page.as_uri(), f"{served.url}/simple/torch/")
    found = packages(Indexes(tree.url, (f"{served.url}/simple",), places), "torch")
    assert [one.version for one in found] == ["2.1.0", "2.2.0+cpu"] * 2 + ["2.3.0", "2.4.0", "2.1.0", "2.2.0+cpu"]
    assert all(one.url.endswith("torch-2.2.0%2Bcpu-py3-none-any.whl") for one in found if one.version == "2.2.0+cpu")


def test_an_incomplete_list_is_an_error(tree: Any, serve: Serve, answer: Any) -> None:
    down = serve(lambda path: answer(500))
    with pytest.raises(IndexUnreachable):
        packages(Indexes(tree.url, (down.url,)), "torch", retry=SHORT)
