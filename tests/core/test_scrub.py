"""Secrets are removed from texts, and everything else stays."""

from __future__ import annotations

import base64
import html
import json
import shlex
import string
import time
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from torchbisect.core.printable import without_invisible
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
    st.builds("{}_{}_{}".format, st.sampled_from(["sk", "rk"]), st.sampled_from(["live", "test"]), words(24)),
    st.builds(
        "{}{}".format, st.sampled_from(["ya29.", "nvapi-", "gsk_", "r8_", "hvs.", "lin_api_", "ATATT3"]), words(60)
    ),
    st.builds(
        "SG.{}.{}".format,
        st.text(ALPHANUMERIC, min_size=22, max_size=22),
        st.text(ALPHANUMERIC, min_size=43, max_size=43),
    ),
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
        ('{"password": "§", "user": "ann"}', '{"password": "****", "user": "ann"}'),
        ('{\\"api_key\\": \\"§\\"}', '{\\"api_key\\": \\"****\\"}'),
        ("Client(auth_token='§', url=1)", "Client(auth_token='****', url=1)"),
        ('os.environ["WANDB_API_KEY"] = "§"', 'os.environ["WANDB_API_KEY"] = "****"'),
        ("aws_secret_access_key = §+§/§", "aws_secret_access_key = ****"),
        ('{"SecretAccessKey": "§"}', '{"SecretAccessKey": "****"}'),
        ("AccountName=a;AccountKey=§§==;EndpointSuffix=core", "AccountName=a;AccountKey=****;EndpointSuffix=core"),
        ("Server=db;Uid=ann;Pwd=§;", "Server=db;Uid=ann;Pwd=****;"),
        ("host=db user=ann password=§ dbname=x", "host=db user=ann password=**** dbname=x"),
        ("train.py --hf-token § --epochs 1", "train.py --hf-token **** --epochs 1"),
        ("train.py --password=§", "train.py --password=****"),
        ("curl -u ann:§ https://h.example", "curl -u ann:**** https://h.example"),
        ("X-Api-Key: §§", "X-Api-Key: ****"),
        ("{'PRIVATE-TOKEN': '§§'}", "{'PRIVATE-TOKEN': '****'}"),
        ("Authorization: §§", "Authorization: ****"),
        ("Set-Cookie: sid=§; Path=/", "Set-Cookie: ****"),
        ("machine h.example\n  login ann\n  password §\n", "machine h.example\n  login ann\n  password ****\n"),
        ('{"auths": {"h.example": {"auth": "§§"}}}', '{"auths": {"h.example": {"auth": "****"}}}'),
        ("ENV SECRET_KEY §", "ENV SECRET_KEY ****"),
        ("http_proxy=ann:§@proxy:8080", "http_proxy=ann:****@proxy:8080"),
        ("https://hooks.slack.com/services/T1/B2/§", "https://hooks.slack.com/services/****"),
        ("PuTTY\nPrivate-Lines: 1\n§§§§", "PuTTY\nPrivate-Lines: 1\n****"),
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
        "token = tokens[0]; next_token=self.head2.token_of(x); secret_key = torch.int64; api_key=None",
        'AutoTokenizer(pad_token="<pad0>", unk_token="[UNK0]", token="EMPTY", bos_token="<|start0|>")',
        "lambda x:weights1@bias and image:tag1234@sha256:0123 and a[1:n2ndpart]@b",
        "the password: letters and digits, the login name and password of ann",
        "train.py --max-tokens 1024 --token-type bpe --secret -x",
        "Cookie: none and x-ray: 1, and password=os.environ['PASSWORD']",
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
@example(":///root@")
def test_a_second_pass_changes_nothing(text: str) -> None:
    scrubber = Scrubber(["hunter2"], "/home/ann")
    once = scrubber(text)
    assert scrubber(once) == once


@given(AROUND, with_digit(6), AROUND)
def test_the_value_of_a_secret_variable_is_removed(before: str, value: str, after: str) -> None:
    scrubber = Scrubber(known_secrets({"MY_API_KEY": value}))
    assert value not in scrubber(before + value + after)


@pytest.mark.parametrize(
    "written", [repr, ascii, json.dumps, html.escape, quote_plus, shlex.quote, lambda text: repr(text.encode()),
                lambda text: base64.b64encode(text.encode()).decode()]
)  # fmt: skip
def test_the_value_of_a_secret_variable_as_programs_write_it(written: Callable[[str], str]) -> None:
    value = "p'w\"ä\n&<x>7"
    text = f"it is {written(value)}."
    result = Scrubber(known_secrets({"DB_PASSWORD": value}))(text)
    assert HIDDEN in result
    assert len(result) < 20


@pytest.mark.parametrize("words", [("--hf-token", "§"), ("--db-password=§",), ("-x", "--api_key", "§", "y")])
def test_the_argument_of_a_secret_option_is_removed_wherever_it_stands(words: tuple[str, ...]) -> None:
    """The script prints what it was given; a word that begins with a dash is the next option."""
    found = known_secrets({}, [word.replace("§", SURE) for word in words])
    assert found == {SURE}
    assert Scrubber(found)(f"logged in with '{SURE}'") == "logged in with '****'"
    assert known_secrets({}, ["--token", "--verbose"]) == set()


INVISIBLE = (
    "\x1b[0m",
    "\x1b]0;\x07",
    "\x1b[38;5;196m",
    "\x00",
    "\x7f",
    "\x9b",
    "\u200b",
    "\u00ad",
    "\u202e",
    "\ufeff",
    "\ufe0f",
)


@given(TOKENS, st.lists(st.tuples(st.integers(1, 30), st.sampled_from(INVISIBLE)), min_size=1, max_size=4))
def test_a_token_with_invisible_parts_is_removed(token: str, parts: list[tuple[int, str]]) -> None:
    """Colors of a log may stand inside of a token, and a page or a terminal does not show them."""
    spoiled = token
    for place, part in sorted(parts, reverse=True):
        spoiled = spoiled[:place] + part + spoiled[place:]
    found = scrub(f"using {spoiled} now")
    assert token[8:] not in without_invisible(found)
    assert scrub(found) == found


def test_colors_stay_where_nothing_is_hidden() -> None:
    assert scrub("\x1b[31mwrong\x1b[0m result\u200b") == "\x1b[31mwrong\x1b[0m result\u200b"


def test_the_lines_of_a_secret_variable() -> None:
    scrubber = Scrubber(known_secrets({"SIGNING_KEY": "-----BEGIN OTHER-----\nfirstline1234\nsecondline1234\n"}))
    assert (
        scrubber("  firstline1234\n  secondline1234\n-----BEGIN OTHER-----") == "  ****\n  ****\n-----BEGIN OTHER-----"
    )


CASES = [str.upper, str.lower, str.swapcase, str.title, str.capitalize, str.casefold]
FORMS = [str, repr, json.dumps, html.escape, quote_plus, lambda text: f"export X='{text}'; y", lambda text: f"<{text}>"]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(
    "value", ["s3cretValue9-and-more", "hunter2", "Pa5s wörd/ß", "abcdefXY", "UPPERonly", "ключ-Ж42x"]
)
def test_a_value_in_other_letters(case: Callable[[str], str], value: str) -> None:
    scrubber = Scrubber(known_secrets({"MY_TOKEN": value}))
    for write in FORMS:
        text = write(case(value))
        assert case(value) not in scrubber(text), text
        assert write(case(value)) not in scrubber(text), text


def test_a_mixture_of_capitals() -> None:
    scrubber = Scrubber(known_secrets({"MY_TOKEN": "s3cretvalue9"}))
    assert scrubber("x S3cReTvAlUe9 y") == "x **** y"


@pytest.mark.parametrize(
    ("line", "is_hidden"),
    [
        ("kX9fQ2bZ", True),
        ("aB3dE9", True),
        ("Zm9vYmE=", True),
        ("q7-W2_x9", True),
        ("a1B2c3D4e5F", True),
        ("layer1", False),
        ("BatchNorm2d", False),
        ("float32", False),
        ("conv_2d", False),
        ("self.fc1", False),
        ("eager", False),
        ("12345678", False),
        ("aB3d", False),
    ],
)
def test_short_lines_of_a_secret_variable(line: str, is_hidden: bool) -> None:
    """A short line is hidden if it is no word that reports are made of."""
    scrubber = Scrubber(known_secrets({"SIGNING_KEY": f"firstline1234\n{line}\nlastline12345\n"}))
    assert (line not in scrubber(f"it is {line}.")) is is_hidden
    assert line in scrubber(f"x{line}y"), "inside a longer word nothing short is looked for"


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
        "password=",
        "api_key: a1",
        "a_",
        "a.",
        "x-a-",
        "--token ",
        "login a password ",
        " -u a:",
        "a:b1ccccc@",
        "cookie: a",
        "Private-Lines: 1\n",
    ],
)
def test_the_time_grows_with_the_length(piece: str) -> None:
    def seconds(size: int) -> float:
        text = piece * (size // len(piece))
        begun = time.process_time()
        Scrubber(["hunter2hunter2"], "/home/ann")(text)
        return time.process_time() - begun

    assert seconds(200_000) < 20 * max(seconds(20_000), 0.1)
