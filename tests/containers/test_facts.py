"""Facts read back from an environment, and the check that they are of the build that was asked for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchbisect.containers.environment import Facts, dump_facts, parse_facts, read_facts, same_version
from torchbisect.containers.process.commands import Completed
from torchbisect.containers.venv.installer import requirements
from torchbisect.core.build import Build
from torchbisect.core.errors import InstallFailed

TEXT = st.text(max_size=20)
FACTS = st.builds(Facts, TEXT, st.none() | TEXT, TEXT, TEXT, st.none() | TEXT, st.none() | TEXT)
VERSIONS = st.builds(
    lambda minor, patch, dev: f"2.{minor}.{patch}{dev}",
    st.integers(0, 20),
    st.integers(0, 2),
    st.sampled_from(["", ".dev20260101", "a0"]),
)
LOCALS = st.sampled_from(["", "+cpu", "+cu128", "+git1234567"])


@given(FACTS)
def test_facts_round_trip_through_json(facts: Facts) -> None:
    assert parse_facts(dump_facts(facts)) == facts


@given(st.text() | st.sampled_from(["[]", "{}", "null", '{"torch": 1, "python": "", "platform": ""}']))
def test_invalid_facts_are_rejected(text: str) -> None:
    with pytest.raises(ValueError):
        parse_facts(text)


@given(VERSIONS, VERSIONS, LOCALS, LOCALS)
def test_the_local_part_of_a_version_counts_only_if_asked_for(
    asked: str, got: str, asked_local: str, got_local: str
) -> None:
    expected = asked == got and (not asked_local or asked_local == got_local)
    assert same_version(asked + asked_local, got + got_local) is expected


@pytest.mark.parametrize(
    ("done", "words"),
    [
        (Completed(None, "", "", 300.0), "longer than"),
        (Completed(-11, "", "", 1.0), "SIGSEGV"),
        (Completed(1, "", "Traceback\n  File\nImportError: libcudart.so.12\n\n", 1.0), "libcudart"),
        (Completed(0, "hello\n", "", 1.0), "exit status 0"),
    ],
)
def test_a_failed_import_has_its_reason(done: Completed, words: str) -> None:
    with pytest.raises(InstallFailed, match=words) as caught:
        read_facts(lambda arguments, timeout: done, Build("2.8.0"))
    assert caught.value.reason == "import-failed"


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("2.0.1", ["torch==2.0.1", "setuptools<70", "numpy<2", "einops"]),
        ("2.3.0", ["torch==2.3.0", "setuptools<70", "numpy", "einops"]),
        ("2.7.0.dev20250101+cpu", ["torch==2.7.0.dev20250101+cpu", "setuptools<81", "numpy", "einops"]),
        ("2.11.0", ["torch==2.11.0", "setuptools", "numpy", "einops"]),
    ],
)
def test_requirements_by_version(version: str, expected: list[str]) -> None:
    assert requirements(Build(version), ("einops",)) == expected
