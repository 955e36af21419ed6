"""The shrunk script as a test of PyTorch's suite and as a trace, for a real bug of a real release."""

from __future__ import annotations

import json
import re

import pytest
from running import Tool

pytestmark = [pytest.mark.e2e, pytest.mark.long]

SCRIPT = """\
import operator
import torch

def letters(n):
    found = set("wxyz")
    operator.isub(found, set("yz"))
    return n + 1, found

print(torch.compile(letters, backend="eager", fullgraph=True)(torch.ones(2)))
"""
#: A deque without room keeps its items under dynamo, up to torch 2.14.
NEWER = """\
import collections
import torch

def recent(n):
    found = collections.deque(maxlen=0)
    found.append(n + 1)
    return n + 1, len(found)

print(torch.compile(recent, backend="eager", fullgraph=True)(torch.ones(2)))
"""


@pytest.mark.parametrize(
    ("script", "bad", "good"),
    [
        (SCRIPT, "2.8.0", "2.9.0"),
        (NEWER, "2.13.0", "2.15.0"),
    ],
)
def test_a_test_and_a_trace_of_a_bug_of_a_release(tool: Tool, script: str, bad: str, good: str) -> None:
    words = ("--torch", bad, "--good", good, "--emit-test", "--emit-trace")
    done = tool.run("minimize", *words, tool.write(script))
    assert done.returncode == 0, done.stderr
    notices = "\n".join(tool.report["notices"])
    version = tool.report["environment"]["torch"].partition("+")[0]
    assert re.search(rf"test_minimal.py fails on torch {version}.* and on {good}; it belongs to test/dynamo", notices)
    assert "--emit" not in done.stderr.partition("next ")[2]
    text = (tool.out / "test_minimal.py").read_text()
    assert '@parametrize("backend", ["eager", "aot_eager", "inductor"])' in text
    trace = (tool.out / "trace.log").read_text()
    assert "dynamo_output_graph" in trace or "dynamo_start" in trace
    for place in (str(tool.cache), str(tool.folder), "/tmp/"):
        assert place not in trace + text
    assert all(json.loads(line.partition("] ")[2]) for line in trace.splitlines() if not line.startswith("\t"))
