"""Facts read back from an environment, and the check that they are of the build that was asked for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchbisect.containers.environment import Facts, dump_facts, load_facts, parse_facts, read_facts, same_version
from torchbisect.containers.process.run_command import Completed
from torchbisect.containers.venv.installer import requirements
from torchbisect.core.build import Build
from torchbisect.core.errors import InstallFailed

TEXT = st.text(st.characters(exclude_categories=["C", "Z"]), max_size=20)
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


GOOD = '{"torch": "2.8.0", "python": "3.11.7", "platform": "Linux"'
HOSTILE = {
    "text": "hello",
    "list": "[]",
    "number": "7",
    "torn": GOOD,
    "deep": "[" * 100_000,
    "deep-value": GOOD + ', "cuda": ' + "[" * 5000 + "]" * 5000 + "}",
    "wide": GOOD + ', "x": [' + "1," * 2_000_000 + "1]}",
    "huge": GOOD + ', "cuda": "' + "x" * (1 << 20) + '"}',
    "long": GOOD + ', "cuda": "' + "x" * 2000 + '"}',
    "digits": GOOD + ', "cuda": ' + "9" * 5000 + "}",
    "number-for-text": GOOD + ', "cuda": 12.6}',
    "object-for-text": GOOD + ', "git_version": {}}',
    "escape-sequence": GOOD + ', "cuda": "\\u001b[31m"}',
    "two-lines": GOOD + ', "cuda": "1\\n2"}',
    "twice": GOOD + ', "torch": "2.9.0"}',
    "lacks-torch": '{"python": "3.11.7", "platform": "Linux"}',
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_facts_that_an_environment_forges_are_a_failed_import(text: str) -> None:
    done = Completed(0, f"a warning\ntorchbisect-facts:{text}\n", "", 1.0)
    with pytest.raises(InstallFailed, match="gave no facts") as caught:
        read_facts(lambda arguments, timeout: done, Build("2.8.0"))
    assert caught.value.reason == "import-failed"
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 300


def test_a_version_of_thousands_of_digits_is_another_one() -> None:
    text = GOOD.replace("2.8.0", "9" * 900) + "}"
    done = Completed(0, f"torchbisect-facts:{text}\n", "", 1.0)
    with pytest.raises(InstallFailed) as caught:
        read_facts(lambda arguments, timeout: done, Build("2.8.0"))
    assert caught.value.reason == "other-version"
    assert not same_version("2.8.0", "9" * 5000)


@pytest.mark.parametrize("text", [*HOSTILE.values(), "\udcff"])
def test_a_facts_file_that_cannot_be_read_is_none(tmp_path: Path, text: str) -> None:
    path = tmp_path / "facts.json"
    path.write_text(text, errors="surrogateescape")
    assert load_facts(path) is None
    path.unlink()
    os.mkfifo(path)
    assert load_facts(path) is None


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
