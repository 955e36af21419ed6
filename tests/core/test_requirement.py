"""Requirements: what is one reaches the installer in its normal form, and nothing else does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.requirements import Requirement

from torchbisect.core.errors import InputError
from torchbisect.core.requirement import parse_requirement, requirement_name


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("numpy", "numpy"),
        ("  numpy >= 2 , < 3 ", "numpy<3,>=2"),
        ("transformers[torch]==4.57.1", "transformers[torch]==4.57.1"),
        ("einops; python_version >= '3.9'", 'einops; python_version >= "3.9"'),
        ("x @ https://host.example/x-1-py3-none-any.whl", "x @ https://host.example/x-1-py3-none-any.whl"),
        ("torch", "torch"),
    ],
)
def test_a_requirement_has_a_normal_form(text: str, normal: str) -> None:
    assert parse_requirement(text) == normal


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "--index-url=https://evil.example/simple",
        "  --index-url https://evil.example/simple",
        "-e .",
        "-r file.txt",
        "-rfile.txt",
        "@file.txt",
        ".",
        "./x.whl",
        "/etc/passwd",
        "x-1-py3-none-any.whl",
        "https://evil.example/x-1-py3-none-any.whl",
        "numpy --index-url https://evil.example/simple",
        "numpy\n--index-url https://evil.example/simple",
        "numpy\r-r x",
        "numpy\x00",
        "numpy\u2028-e .",
        "numpy pandas",
        "numpy,pandas",
        "numpy # comment",
        "x @ file:///etc/passwd",
        "x @ file:///tmp/x-1-py3-none-any.whl",
        "x @ /etc/passwd",
        "x @ https://evil.example/x-1.tar.gz",
        "x @ https://evil.example/x\n--index-url=https://evil.example",
        "x @ https://evil.example/${GITHUB_TOKEN}/x-1-py3-none-any.whl",
        "x @ git+https://evil.example/x.git",
        "x @ git+file:///tmp/x",
        "x @ ftp://evil.example/x-1-py3-none-any.whl",
        "x @ https://[/x.whl",
        "torch==2.8.0",
        "Torch @ https://evil.example/torch-1-py3-none-any.whl",
        "numpy" * 1000,
    ],
)
def test_everything_else_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(InputError, match="--with") as caught:
        parse_requirement(text)
    assert len(str(caught.value).splitlines()) == 1
    assert str(caught.value).isprintable()


def test_source_packages_are_for_those_who_allow_them() -> None:
    for text in ("x @ https://host.example/x-1.tar.gz", "x @ git+https://host.example/x.git@v1"):
        assert parse_requirement(text, sdists=True) == text
    with pytest.raises(InputError):
        parse_requirement("x @ file:///etc", sdists=True)


def test_the_message_shows_no_password() -> None:
    with pytest.raises(InputError) as caught:
        parse_requirement("x @ https://ann:hunter2seven@host.example/x.tar.gz")
    assert "hunter2seven" not in str(caught.value)


@given(st.text() | st.text(st.sampled_from(list("-er @./:=<>;,[]'\"\n ax1$#")), max_size=30))
def test_what_is_accepted_begins_with_a_name_and_means_the_same(text: str) -> None:
    try:
        normal = parse_requirement(text)
    except InputError:
        return
    assert normal[0].isalnum()
    assert normal.isprintable()
    assert parse_requirement(normal) == normal
    assert Requirement(normal) == Requirement(text)
    assert requirement_name(normal)
