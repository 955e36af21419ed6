"""Secrets are removed from texts, and everything else stays."""

from __future__ import annotations

import string
import time
from urllib.parse import quote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from torchbisect.core.scrub import HIDDEN, Scrubber, known_secrets, scrub, scrub_secrets

ALPHANUMERIC = string.ascii_letters + string.digits
SURE = "s3cretVALUE9"


def words(size: int, more: str = "") -> st.SearchStrategy[str]:
    return st.text(ALPHANUMERIC + more, min_size=size, max_size=size + 40)


def with_digit(size: int, more: str = "") -> st.SearchStrategy[str]:
    return words(size, more).map(lambda text: text + "7X")


TOKENS = st.one_of(
    st.builds("{}_{}".format, st.sampled_from(["ghp", "gho", "ghu", "ghs", "ghr", "github_pat", "hf"]), words(36)),
    words(20, "_-").map("glpat-".__add__),
    words(60, "_-").map("pypi-AgEIcHlwaS5vcmc".__add__),
    st.builds("sk-{}{}".format, st.sampled_from(["", "proj-", "ant-api03-"]), with_digit(24, "_-")),
    st.text(string.ascii_uppercase + string.digits, min_size=16, max_size=16).map("AKIA".__add__),
    st.builds("xox{}-{}".format, st.sampled_from("abps"), words(24, "-")),
    st.builds("eyJ{}.eyJ{}.{}".format, words(20, "_-"), words(20, "_-"), words(20, "_-")),
)
#: Texts without a character that could go on with a token.
AROUND = st.text(st.sampled_from(list(" \n\t.,;:!?()[]{}\"'=/\\|&#%@*äß…")), max_size=12)


@given(AROUND, TOKENS, AROUND)
@example("'", "ghp_" + "a" * 36, "'")
@example("//", "glpat-" + "x" * 20, "@")
def test_a_token_of_a_known_form_is_removed_wherever_it_stands(before: str, token: str, after: str) -> None:
    result = scrub(before + token + after)
    assert token not in result
    assert token[8:] not in result
    assert scrub(result) == result


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://user:§@host.example/simple", "https://host.example/simple"),
        ("https://§@host.example/simple", "https://host.example/simple"),
        ("https://user:a/§@host.example/simple", "https://host.example/simple"),
        ("https://user:a/b@§@host.example/x@v1", "https://host.example/x@v1"),
        ("https://user:a@§@host.example/simple", "https://host.example/simple"),
        ("https://user:a'§@host", "https://host"),
        ("https://user:a%40§@host:8080/simple", "https://host:8080/simple"),
        ("git+https://x-access-token:§@github.com/a/b.git@v1.2", "git+https://github.com/a/b.git@v1.2"),
        ("git+ssh://git:§@github.com/a/b.git", "git+ssh://git@github.com/a/b.git"),
        ("socks5h://user:§@proxy:1080", "socks5h://proxy:1080"),
        ("1https://user:§@host", "1https://host"),
        ("?next=https%3A%2F%2Fuser%3A§%40host%2Fsimple", "?next=https%3A%2F%2Fhost%2Fsimple"),
        ("https://h/w.whl?a=1&token=§&b=2", "https://h/w.whl?a=1&token=****&b=2"),
        ("https://h/w.whl?X-Amz-Signature=§&X-Amz-Credential=§", None),
        ("https://h/w.whl?sv=1&sig=§", "https://h/w.whl?sv=1&sig=****"),
        ("https://h/#access_token=§", "https://h/#access_token=****"),
        ("goto%3Faccess_token%3D§%26b%3D1", "goto%3Faccess_token%3D****%26b%3D1"),
        ("Authorization: Bearer §", "Authorization: Bearer ****"),
        ("{'Authorization': 'Basic §'}", "{'Authorization': 'Basic ****'}"),
        ("curl -H 'authorization: token §'", "curl -H 'authorization: token ****'"),
        ("sent Bearer §x2y3z4w5v6", "sent Bearer ****"),
        ("export HF_TOKEN=§", "export HF_TOKEN=****"),
        ('AWS_SECRET_ACCESS_KEY="§"', 'AWS_SECRET_ACCESS_KEY="****"'),
        ("-----BEGIN RSA PRIVATE KEY-----\n§\n-----END RSA PRIVATE KEY-----\nrest", "****\nrest"),
        ("-----BEGIN OPENSSH PRIVATE KEY-----\\n§\\n§", "****"),
    ],
)
def test_secrets_in_their_places(text: str, shown: str | None) -> None:
    result = scrub(text.replace("§", SURE))
    assert SURE not in result
    assert shown is None or result == shown
    assert scrub(result) == result


@pytest.mark.parametrize(
    "text",
    [
        "https://host.example:8443/simple?a=1&b=2#egg=name",
        "https://github.com/pytorch/pytorch.git@v2.8.0",
        "https://example.org/@user/post and mail@example.org",
        "http://[::1]:8080/a@b",
        '["https://a.example","ann@b.example"]',
        "['https://a.example','ann@b.example']",
        "git@github.com:pytorch/pytorch.git and ssh://git@github.com/a/b.git",
        "tokens = tokenizer(text, max_tokens=512, key=query @ key.T)",
        "PAD_TOKEN = '<pad>'; sort_key = lambda pair: pair[1]",
        "x.requires_grad_(); hf_hub_download('a/b'); task-scheduler-with-a-long-name-1234567890",
        "basic instructions and bearer certificates follow",
        "the sk-learn-contrib-something-package",
        "/usr/lib/python3.11/asyncio and a/home/b and https://host/home/ann/x and /homes/x and /rooted",
        "pypi-simple>=1.6",
        "eyJ is how a token begins",
        "def forward(self, x): return torch.sin(x) / 2 @ self.weight",
    ],
)
def test_ordinary_text_stays(text: str) -> None:
    assert scrub(text) == text


@given(st.text(st.characters(exclude_characters="/:=?&#%-_", codec="utf-8"), max_size=200))
def test_text_without_the_marks_of_a_secret_stays(text: str) -> None:
    assert Scrubber(["hunter2hunter2"]).secrets(text) == text or "hunter2hunter2" in text


PIECES = st.sampled_from(
    ["https", "://", "@", ":", "/", "user", "hunter2", "?", "token=", "&", "%3A%2F%2F", "%40", "ssh", "ghp_", "a" * 36]
    + ["****", "Bearer ", "Authorization: ", "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----", "\n", " ", "'"]
    + ["/home/", "ann", "/root", "~", "C:\\Users\\", "HF_TOKEN=", "1", "A", "%3Ftoken%3D", "%26"]
)


@given(st.lists(PIECES, max_size=24).map("".join))
def test_a_second_pass_changes_nothing(text: str) -> None:
    scrubber = Scrubber(["hunter2"], "/home/ann")
    once = scrubber(text)
    assert scrubber(once) == once


@given(AROUND, with_digit(6), AROUND)
def test_the_value_of_a_secret_variable_is_removed(before: str, value: str, after: str) -> None:
    scrubber = Scrubber(known_secrets({"MY_API_KEY": value}))
    assert value not in scrubber(before + value + after)


def test_the_secrets_of_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRIVATE_INDEX_PASSWORD", "pa ss/wörd9")
    monkeypatch.setenv("PIP_INDEX_URL", "https://ann:hunter%2F2seven@host.example/simple")
    monkeypatch.setenv("HOME", "/srv/people/ann")
    monkeypatch.setattr("sys.argv", ["torchbisect", "--git", "https://t0ken-of-git@git.example/x"])
    secrets = ["pa ss/wörd9", quote("pa ss/wörd9", safe=""), "hunter%2F2seven", "hunter/2seven", "t0ken-of-git"]
    for secret in secrets:
        assert scrub(f"it is {secret}.") == f"it is {HIDDEN}."
    assert scrub("/srv/people/ann/x.py, /srv/people/anna/x.py") == "~/x.py, /srv/people/anna/x.py"
    assert scrub_secrets("/srv/people/ann/x.py") == "/srv/people/ann/x.py"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('File "/home/ann/x/repro.py", line 3', 'File "~/x/repro.py", line 3'),
        ("/Users/ann", "~"),
        ("C:\\Users\\ann\\x.py", "~\\x.py"),
        ("/root/.cache/torch", "~/.cache/torch"),
        ("PATH=/home/ann/bin:/usr/bin", "PATH=~/bin:/usr/bin"),
    ],
)
def test_home_folders(text: str, shown: str) -> None:
    assert scrub(text) == shown


@pytest.mark.slow
@pytest.mark.parametrize(
    "piece",
    [
        "a",
        "://",
        "https://a:",
        "x@",
        "-----BEGIN PRIVATE KEY-----",
        "?token",
        "eyJaaaaaaaaa.",
        "sk-",
        "Basic ",
        "A_KEY=",
        "%3A%2F%2F",
        " ",
        "/home/",
    ],
)
def test_the_time_grows_with_the_length(piece: str) -> None:
    def seconds(size: int) -> float:
        text = piece * (size // len(piece))
        begun = time.perf_counter()
        Scrubber(["hunter2hunter2"], "/home/ann")(text)
        return time.perf_counter() - begun

    seconds(10_000)
    assert seconds(200_000) < 2.0
