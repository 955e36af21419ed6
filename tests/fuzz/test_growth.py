"""The time to read a text from outside grows with its length and no faster, whatever is repeated in it."""

from __future__ import annotations

import contextlib
import gc
import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from outside_parsers import PARSERS
from repeated import PIECES

from torchbisect.core.printable import clean, one_line
from torchbisect.core.scrub import scrub
from torchbisect.core.toml import read_toml
from torchbisect.pipeline.notebook import notebook_source
from torchbisect.probe.judge.classify import find_mismatch, find_untestable
from torchbisect.probe.judge.observation import Difference, Ending, Observation, Raised
from torchbisect.probe.judge.signature import MismatchKind
from torchbisect.reports.render.error_logs import cut_log
from torchbisect.reports.sanitize import code, fence, prose, short_line, without_machine_paths

pytestmark = pytest.mark.slow

MORE = {
    "has-no-wheels": " has no wheels",
    "requirements": "torch==2.8.0,",
    "because": "Because ",
    "not-found": "and x was not found in the ",
    "calls-to": "Call to `",
    "wheel-files": "failed to open file `",
    "python-needs": " depends on Python ",
    "comparisons": "=<>!~",
    "paths": "/a",
    "windows-paths": "C:\\a\\",
    "assignments-of-secrets": "TOKEN=",
    "parameters": "?key=",
    "encoded": "%3A%2F%2F",
    "bearers": "bearer ",
    "begins": "-----BEGIN ",
    "sizes": "torch.Size([",
    "numbers": "1, ",
    "negative": "-1 ",
    "exponents": "1e5",
    "hexadecimals": "0x",
    "guards": "L['x']",
    "tensors": "tensor(",
    "operands": "(*(",
    "carets": "^",
    "frames": 'File "x", line 1, in f\n',
    "magics": "%time ",
    "shell": "!ls\n",
    "commas": ",",
    "key-parts": '"a".',
    "tables": "[[a]]\n",
    "inline-tables": "a={",
    "nul-fields": "\0",
    "json-strings": '"",',
    "json-objects": '{"a":',
    "links-of-a-page": '<a href="torch-2.8.0-py3-none-any.whl">torch-2.8.0-py3-none-any.whl</a>',
    "escapes": "\x1b[",
    "titles": "\x1b]0;",
    "colons": "::",
    "plus": "+",
    "percents": "%",
}


def judged(text: str) -> None:
    """Judge runs that end with this text as the message of an exception, and as a value."""
    for kind in ("torch._inductor.exc.InductorError",):
        raised = Ending("raised", Raised(kind, (), text, ()), errors=text, output=text, compiled=1)
        fine = Ending("finished", compiled=1)
        difference = Difference(MismatchKind.METADATA, f"call 0 output{text}", "dtype", text, f"{text}x")
        for observation in (
            Observation(fine, raised),
            Observation(raised, raised),
            Observation(fine, fine, (difference,)),
        ):
            find_untestable(observation)
            find_mismatch(observation, "import torch\n")


def notebook(text: str) -> None:
    notebook_source(json.dumps({"cells": [{"cell_type": "code", "source": f"!x\n{text}"}]}).encode(), "a.ipynb")


def rendered(text: str) -> None:
    for render in (prose, code, fence, short_line, without_machine_paths):
        render(text)


# ``test_issue_bodies`` measures those that read a body.
_LEFT_OUT = ("database-row", "wheel", "issue-body", "collect-env", "issues", "stated-torch", "stated-variables")
READERS: dict[str, Callable[[str], object]] = {
    name: parser.parse for name, parser in PARSERS.items() if name not in _LEFT_OUT
} | {
    "judge": judged,
    "cell": notebook,
    "value-of-toml": lambda text: read_toml(f"a = {text}\n"),
    "key-of-toml": lambda text: read_toml(f"{text} = 1\n"),
    "scrub": scrub,
    "clean": clean,
    "one-line": lambda text: one_line(text, 100_000),
    "log": cut_log,
    "markdown": rendered,
}
REFUSED = tuple({error for parser in PARSERS.values() for error in parser.errors})


def seconds(read: Callable[[str], object], text: str) -> float:
    """Return the processor time to read a text, the lesser of two if it takes long."""
    found: list[float] = []
    while not found or (len(found) < 2 and found[0] > 0.05):
        gc.disable()
        before = time.process_time()
        with contextlib.suppress(*REFUSED):
            read(text)
        found.append(time.process_time() - before)
        gc.enable()
    return min(found)


@pytest.mark.parametrize("name", READERS)
def test_four_times_the_text_takes_about_four_times_as_long(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    slow = {}
    for piece, text in {**PIECES, **MORE}.items():
        whole = seconds(READERS[name], text * (8_000 // len(text)))
        # Quadratic time would be 16 times as long. Below a tenth of a second the clock and fixed costs decide.
        if whole > 0.1 and whole > 9 * (quarter := seconds(READERS[name], text * (2_000 // len(text)))):
            slow[piece] = (quarter, whole)
    assert not slow
