"""Removal of the machine's paths."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchbisect.reports.scrub import in_one_folder, without_machine_paths


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('File "/home/ann/x/repro.py", line 3', 'File "…/repro.py", line 3'),
        ("/opt/v/lib/python3.11/site-packages/torch/_dynamo/a.py:7", "…/torch/_dynamo/a.py:7"),
        ("/usr/lib/python3/dist-packages/numpy/core.py", "…/numpy/core.py"),
        ("/usr/lib/python3.11/asyncio/base.py", "…/python3.11/asyncio/base.py"),
        ("/srv/pyenv/versions/3.11.7/lib/python3.11/site-packages", "…/python3.11/site-packages"),
        ("g++ /tmp/torchinductor_ann/ab/cab.cpp -I/opt/inc/x -L/opt/lib/y -o /tmp/q/o.so", None),
        ("file:///home/ann/x.py", "file://…/x.py"),
        ("PATH=/home/ann/bin:/usr/local/bin", "PATH=…/bin:…/bin"),
        (r"C:\Users\Ann\repro.py failed", "…/repro.py failed"),
        ("in /home", "in …"),
        ("cwd=/Users", "cwd=…"),
    ],
)
def test_absolute_paths_are_shortened(text: str, shown: str | None) -> None:
    result = without_machine_paths(text)
    assert shown is None or result == shown
    assert not any(secret in result for secret in ("ann", "Ann", "/opt", "/usr", "/tmp", "/srv"))


@pytest.mark.parametrize(
    "text",
    [
        "https://github.com/pytorch/pytorch/issues/1",
        "torch/_dynamo/a.py and ./x/y.py and ../z/q",
        "/dev/null and /proc/self/status",
        "a / b, 3/4, 1 // 2, x/y/z, and/or",
        "dtype torch.float32/64 [/] 2:1",
    ],
)
def test_other_texts_stay(text: str) -> None:
    assert without_machine_paths(text) == text


def test_a_command_in_the_folder_of_its_files() -> None:
    command = "torchbisect run /home/ann/x/repro.py --torch 2.8.0 --out /home/ann/out"
    assert in_one_folder(command) == "torchbisect run repro.py --torch 2.8.0 --out out"


NAMES = st.text("abcxyz-_.09", min_size=1, max_size=8).filter(lambda name: name.strip("."))


@given(st.lists(NAMES, min_size=2, max_size=6), st.sampled_from(["", "at ", '"', "('", "x=", "\n"]))
def test_no_absolute_path_is_left(parts: list[str], before: str) -> None:
    path = "/secret-" + "/".join(parts)
    result = without_machine_paths(before + path)
    assert "secret" not in result
    assert parts[-1] in result


@given(st.text("ab/ .:\\C~…'\"=-I", max_size=40))
def test_a_second_pass_changes_nothing(text: str) -> None:
    once = without_machine_paths(text)
    assert without_machine_paths(once) == once
