"""The same proofs in containers: a culprit by its revert, a fix by its application, and what a patch does."""

from __future__ import annotations

import difflib
import json
import sys
from pathlib import Path

import pytest
from nightly_index import DYNAMO, DYNAMO_SCRIPT
from proving import index_with_bug, searched
from pytorch_clone import CULPRIT
from running import Tool

from torchbisect.containers.docker.engine import NETWORK_VARIABLE

pytestmark = [pytest.mark.e2e, pytest.mark.long]

SINE = """
import torch
print(torch.compile(lambda x: x.sin(), backend="eager")(torch.ones(3)))
"""
CALL = "    return gm.forward\n"
WRONG = "    if 'sin' in gm.code:\n        return lambda *inputs: [output + 1 for output in gm.forward(*inputs)]\n"
NATIVE = "diff --git a/c10/x.h b/c10/x.h\n--- a/c10/x.h\n+++ b/c10/x.h\n@@ -1 +1 @@\n-a\n+b\n"


@pytest.fixture
def contained(own_image: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Tool, tuple[str, ...]]:
    """Return the command in an empty folder, and the words that put it into containers."""
    if sys.version_info[:2] != (3, 11):
        pytest.skip("the wheels are those of the torch that is installed here, and the image has Python 3.11")
    monkeypatch.setenv(NETWORK_VARIABLE, "host")
    return Tool(tmp_path, tmp_path / "cache"), ("--sandbox", "docker", "--image", own_image)


def diff(name: str, old: str, new: str) -> str:
    lines = [text.splitlines(keepends=True) for text in (old, new)]
    return "".join(difflib.unified_diff(*lines, f"a/{name}", f"b/{name}"))


@pytest.mark.parametrize(("repaired", "pair"), [(CULPRIT - 1, 0), (CULPRIT + 1, 1)], ids=["found", "open-range"])
def test_a_culprit_is_proven_by_its_revert(contained: tuple[Tool, tuple[str, ...]], repaired: int, pair: int) -> None:
    """The culprit is asked itself, or it is one of three commits that can't be imported."""
    tool, words = contained
    clone, found = searched(tool, *words, fix=False, repaired=repaired, pair=pair)
    assert found["commit"] == clone.culprit
    (proof,) = found["proofs"]
    assert (proof["commit"], proof["reverted"], proof["passes"]) == (clone.culprit, True, True)


def test_a_fix_is_applied_to_the_last_bad_build(contained: tuple[Tool, tuple[str, ...]]) -> None:
    tool, words = contained
    clone, found = searched(tool, *words, fix=True, repaired=CULPRIT - 1, pair=2)
    (proof,) = found["proofs"]
    assert found["commit"] == proof["commit"] == clone.culprit
    assert (proof["build"], proof["reverted"], proof["passes"]) == (found["last_bad"], False, True)


def test_what_patches_do_to_a_nightly(contained: tuple[Tool, tuple[str, ...]]) -> None:
    """One fixes the bug, one breaks another script besides; one does not apply, one is of compiled code."""
    tool, words = contained
    index = index_with_bug(fix=False)
    good = (index.site / DYNAMO.file).read_text()
    fix = diff(DYNAMO.file, DYNAMO.applied(good), good)
    other = "torch/_dynamo/backends/debugging.py"
    text = (index.site / other).read_text()
    both = fix + diff(other, text, text.replace(CALL, WRONG + CALL, 1))
    tool.write(DYNAMO_SCRIPT)
    tool.write(SINE, "sine.py")
    where = ("--channel", "nightly", "--index-url", index.start(), "--torch", index.date(1).isoformat())
    seen = []
    try:
        for patch in (fix, both, fix.replace("reversed", "sorted"), NATIVE):
            tool.write(patch, "a.diff")
            done = tool.run("verify", *words, *where, "--json", "--patch", "a.diff", "--also", "sine.py", "repro.py")
            found = json.loads(done.stdout or "{}")
            seen.append((done.returncode, [one["effect"] for one in found.get("scripts", ())], found.get("reason")))
    finally:
        index.stop()
    assert seen[0] == (0, ["fixes it", "no effect"], None), done.stderr
    assert seen[1] == (3, ["fixes it", "causes it"], None), done.stderr
    assert (seen[2][0], "does not apply" in seen[2][2]) == (6, True), seen
    assert (seen[3][0], "compiled code (c10/x.h)" in seen[3][2]) == (6, True), seen
