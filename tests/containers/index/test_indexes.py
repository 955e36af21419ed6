"""Choice of indexes: the command line's, else uv's settings, else pip's; no password is ever shown."""

from __future__ import annotations

import os
import string
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pypi_simple import PYPI_SIMPLE_ENDPOINT

from torchbisect.containers.index.indexes import Indexes, parse_pip_config
from torchbisect.core.scrub import scrub_secrets

NO_PIP = str(Path(sys.executable).with_name("no-such-python"))
LETTERS = st.text(string.ascii_letters + string.digits, min_size=1, max_size=12)


@pytest.fixture
def bare(tmp_path: Path) -> dict[str, str]:
    """Variables without any setting of indexes."""
    return {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path), "XDG_CONFIG_DIRS": str(tmp_path)}


def gather(environ: dict[str, str], typed: str | None = None, extra: tuple[str, ...] = ()) -> Indexes:
    return Indexes.from_configuration(typed, extra, environ, python=NO_PIP)


def test_the_public_index_is_the_default(bare: dict[str, str]) -> None:
    found = gather(bare)
    assert found.urls == (PYPI_SIMPLE_ENDPOINT,)
    assert found.main_is_public
    assert Indexes(PYPI_SIMPLE_ENDPOINT.rstrip("/")).main_is_public
    assert not Indexes("https://mirror/simple").main_is_public
    assert "UV_DEFAULT_INDEX" not in found.uv_variables(), "it is uv's own default too"
    assert Indexes(extra_index_urls=("https://e/s",)).named == ("https://e/s",)


def test_the_command_line_wins_and_keeps_the_configured_extras(bare: dict[str, str]) -> None:
    environ = {
        **bare,
        "UV_DEFAULT_INDEX": "https://uv/simple",
        "PIP_EXTRA_INDEX_URL": "https://a/simple\n https://b/simple",
        "PIP_FIND_LINKS": "/wheels",
    }
    found = gather(environ, "https://typed/simple", ("https://more/simple",))
    assert found.index_url == "https://typed/simple"
    assert found.extra_index_urls == ("https://more/simple", "https://a/simple", "https://b/simple")
    assert found.find_links == ("/wheels",)


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"UV_INDEX_URL": "https://u/s", "PIP_INDEX_URL": "https://p/s"}, "https://u/s"),
        ({"UV_DEFAULT_INDEX": "mine=https://d/s", "UV_INDEX_URL": "https://u/s"}, "https://d/s"),
        ({"PIP_INDEX_URL": "https://p/s"}, "https://p/s"),
    ],
)
def test_uvs_settings_come_before_pips(bare: dict[str, str], variables: dict[str, str], expected: str) -> None:
    assert gather({**bare, **variables}).index_url == expected


def test_uvs_variables_hold_several_values(bare: dict[str, str]) -> None:
    environ = {
        **bare,
        "UV_INDEX": "one=https://1/s https://2/s?a=b",
        "UV_EXTRA_INDEX_URL": "https://3/s",
        "UV_FIND_LINKS": "/a, https://l/p",
    }
    found = gather(environ)
    assert found.extra_index_urls == ("https://1/s", "https://2/s?a=b", "https://3/s")
    assert found.find_links == ("/a", "https://l/p")


@pytest.mark.skipif(sys.version_info < (3, 11), reason="uv's file is TOML, which Python 3.10 can't read")
def test_uvs_own_file_is_read(bare: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "uv").mkdir()
    (tmp_path / "uv/uv.toml").write_text(
        'find-links = ["/w"]\n[[index]]\nurl = "https://x/s"\n[[index]]\nurl = "https://d/s"\ndefault = true\n'
        '[[index]]\nurl = "https://hidden/s"\nexplicit = true\n[pip]\nextra-index-url = ["https://e/s"]\n'
    )
    found = gather(bare)
    assert found == Indexes("https://d/s", ("https://e/s", "https://x/s"), ("/w",))


@pytest.mark.skipif(sys.version_info < (3, 11), reason="uv's file is TOML, which Python 3.10 can't read")
def test_a_broken_uv_file_is_ignored(bare: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "uv").mkdir()
    for text in (
        "this is [not toml",
        "x = " + "[" * 100_000,
        "x = " + "{x = " * 100_000,
        "a." * 100_000 + "b = 1",
        "x = " + "9" * 100_000,
        "x = 1\n" * 1_000_000,
        "extra-index-url = 3\nfind-links = 3\nindex = 3\npip = 3\nindex-url = 3\n",
        'extra-index-url = "https://x/s"\nindex = ["https://x/s"]\n',
        "\udcff",
    ):
        (tmp_path / "uv/uv.toml").write_text(text, errors="surrogateescape")
        assert gather(bare) == Indexes(), text[:40]
    (tmp_path / "uv/uv.toml").unlink()
    os.mkfifo(tmp_path / "uv/uv.toml")
    assert gather(bare) == Indexes()


def test_pips_own_file_is_read_by_pip(bare: dict[str, str], tmp_path: Path) -> None:
    """The real pip reads its file."""
    (tmp_path / "pip.conf").write_text(
        "[global]\nextra-index-url =\n    https://a/s\n    https://b/s\n[install]\nindex-url=https://i/s"
    )
    found = Indexes.from_configuration(environ={**bare, "PIP_CONFIG_FILE": str(tmp_path / "pip.conf")})
    assert found.index_url == "https://i/s"
    assert found.extra_index_urls[:2] == ("https://a/s", "https://b/s")


def test_a_folder_is_an_index_on_disk(bare: dict[str, str], tmp_path: Path) -> None:
    assert gather(bare, str(tmp_path)).index_url == tmp_path.as_uri()


@given(st.dictionaries(st.sampled_from(["index-url", "extra-index-url", "find-links"]), st.text(), max_size=3))
def test_pips_listing_round_trips(settings: dict[str, str]) -> None:
    listing = "\n".join(f"global.{name}={value!r}" for name, value in settings.items())
    assert parse_pip_config(listing) == settings


@given(st.text())
def test_any_listing_can_be_read(listing: str) -> None:
    assert all(isinstance(value, str) for value in parse_pip_config(listing).values())


def test_pips_sections_have_their_ranks() -> None:
    listing = ":env:.index-url='e'\ninstall.index-url='i'\nglobal.index-url='g'\nglobal.cert='c'\nfreeze.index-url='f'"
    assert parse_pip_config(listing) == {"index-url": "e", "cert": "c"}


@given(LETTERS, LETTERS, LETTERS)
def test_no_name_or_password_is_shown(name: str, password: str, host: str) -> None:
    url = f"https://{name}-u:{password}-p@{host}.example/simple/"
    for text in (scrub_secrets(url), str(Indexes(url)), scrub_secrets(f"cause: can't fetch {url} now")):
        assert f"{name}-u" not in text
        assert f"{password}-p" not in text
        assert f"https://{host}.example" in text


def test_uv_gets_indexes_by_variables_and_not_by_options() -> None:
    """Every user of a machine can read a process's options."""
    variables = Indexes("https://u:p@d/s", ("https://e/s", "https://f/s"), ("/a", "/b")).uv_variables()
    assert variables == {
        "UV_DEFAULT_INDEX": "https://u:p@d/s",
        "UV_INDEX": "https://e/s https://f/s",
        "UV_FIND_LINKS": "/a,/b",
        "UV_INDEX_STRATEGY": "unsafe-best-match",
    }
