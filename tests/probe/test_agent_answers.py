"""Lines that come from an agent and are no answers: a real process sends them, and each ends in a named reason."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import pytest

from torchbisect.containers.environment import Facts
from torchbisect.containers.process.processes import HostProcess
from torchbisect.core.build import Build, Channel
from torchbisect.core.repro import Repro, Settings
from torchbisect.core.trace import Trace
from torchbisect.probe import agent_client
from torchbisect.probe.agent_client import Agent, AgentFailed
from torchbisect.probe.judge.classify import find_untestable

_ENDING = {"how": "finished", "compiled": 1}
RIGHT = {"eager": _ENDING, "compiled": _ENDING, "differences": [], "notes": [], "drawn": False}

_SENDER = """\
import hmac, sys
key = sys.stdin.buffer.read(32)
sys.stdin.buffer.readline()
count = 0
def send(text):
    global count
    for line in text.splitlines(keepends=True):
        data = line.encode()
        digest = hmac.new(key, b"%d " % count + data, "sha256").hexdigest()
        sys.stdout.buffer.write(digest.encode() + b" " + data)
        sys.stdout.buffer.flush()
        count += 1
send('{"ready": {}}\\n')
while sys.stdin.buffer.readline():
    send(eval(sys.argv[1]))
"""


class Sender:
    """An environment whose agent answers each question with the text that an expression gives."""

    local = True
    compiler_cache = None
    build = Build("2.8.0", Channel.INSTALLED)
    facts = Facts("2.8.0+cpu", "abc", "3.11.7", "Linux")

    def __init__(self, expression: str, script: str = _SENDER) -> None:
        self._command = [sys.executable, "-c", script, expression]

    def start(self, arguments, extra=None) -> HostProcess:
        return HostProcess(self._command, environment={})


def answered(value: object) -> str:
    """Return the expression for the answer to the first question."""
    return repr(json.dumps({"id": 1, "answer": value}) + "\n")


def changed(**parts: object) -> str:
    return answered({**RIGHT, **parts})


def ending(**parts: object) -> str:
    return changed(compiled={**_ENDING, **parts})


FORGED = {
    "text": "'hello\\n'",
    "number": "'7\\n'",
    "list": "'[]\\n'",
    "null-answer": answered(None),
    "no-answer": "'{\"id\": 1}\\n'",
    "other-question": repr(json.dumps({"id": 2, "answer": RIGHT}) + "\n"),
    "text-as-number": repr(json.dumps({"id": "1", "answer": RIGHT}) + "\n"),
    "true-as-number": repr(json.dumps({"id": True, "answer": RIGHT}) + "\n"),
    "begun-list": repr(json.dumps({"id": 1, "begun": ["eager"]}) + "\n"),
    "deep": "'[' * 100000 + '\\n'",
    "deep-answer": "'{\"id\": 1, \"answer\": ' + '{\"a\": ' * 90000 + '1' + '}' * 90001 + '\\n'",
    "wide": "'{\"id\": 1, \"answer\": [' + '{},' * 5000000 + '1]}\\n'",
    "digits": "'{\"id\": 1, \"answer\": ' + '9' * 100000 + '}\\n'",
    "infinite-id": "'{\"id\": 1e999, \"answer\": 1}\\n'",
    "twice": repr('{"id": 1, "answer": 1, "answer": ' + json.dumps(RIGHT) + "}\n"),
    "not-utf8": "'\\udcff\\n'.encode('utf-8', 'surrogateescape').decode('latin-1')",
    "no-eager": answered({key: value for key, value in RIGHT.items() if key != "eager"}),
    "eager-is-text": changed(eager="finished"),
    "differences-is-object": changed(differences={}),
    "difference-of-no-kind": changed(
        differences=[{"kind": "bad", "place": "", "attribute": "", "eager": "", "compiled": ""}]
    ),
    "notes-is-text": changed(notes="all is well"),
    "drawn-is-text": changed(drawn="no"),
    "how-is-unknown": ending(how="splendid"),
    "seconds-is-text": ending(seconds="1"),
    "seconds-is-nan": ending(seconds=float("nan")),
    "compiled-is-true": ending(compiled=True),
    "recompiles-is-text": ending(recompiles="abc"),
    "raised-is-text": ending(how="raised", raised="ValueError"),
    "frames-of-numbers": ending(
        how="raised", raised={"name": "E", "bases": [], "message": "", "frames": [1], "cause": None}
    ),
    "endless-cause": """'{"id": 1, "answer": {"eager": {"how": "raised", "raised": ' + '{"cause": ' * 5000 + '\\n'""",
}  # fmt: skip


@pytest.mark.parametrize("expression", FORGED.values(), ids=FORGED)
def test_a_line_that_is_no_answer(expression: str) -> None:
    with Agent(Sender(expression)) as agent:
        observation = agent.observe(Repro("pass"), Settings())
    untestable = find_untestable(observation)
    assert untestable is not None
    assert untestable.reason == "forged-answer"
    assert untestable.detail.isprintable()
    assert len(untestable.detail) < 300


def test_a_right_answer() -> None:
    with Agent(Sender(answered(RIGHT))) as agent:
        assert find_untestable(agent.observe(Repro("pass"), Settings())) is None


@pytest.mark.parametrize("expression", [*FORGED.values(), answered({"lines": "x"})][::4])
def test_a_forged_trace_is_an_empty_one(expression: str) -> None:
    with Agent(Sender(expression)) as agent:
        assert agent.trace(Repro("pass")) == Trace((), ())


def test_a_torn_line_is_no_answer() -> None:
    script = _SENDER.replace("send(eval(sys.argv[1]))", "send(eval(sys.argv[1])); sys.exit()")
    with Agent(Sender(answered(RIGHT)[:-4] + "'", script)) as agent:
        untestable = find_untestable(agent.observe(Repro("pass"), Settings()))
    assert untestable is not None
    assert untestable.reason == "lost"


def test_an_endless_line_ends(tmp_path: Path) -> None:
    script = _SENDER.replace("send(eval(sys.argv[1]))", "[sys.stdout.write('x' * 65536) for _ in range(9999)]")
    with Agent(Sender("", script)) as agent:
        untestable = find_untestable(agent.observe(Repro("pass"), Settings()))
    assert untestable is not None
    assert untestable.reason == "forged-answer"
    assert "more than 64 MB" in untestable.detail


@pytest.mark.slow
@pytest.mark.parametrize("line", ['{"id": 1, "begun": "eager"}\\n', '{"id": 1, "alive": true}\\n'])
def test_lines_without_end_do_not_hold_the_question(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    script = _SENDER.replace("send(eval(sys.argv[1]))", f"while True: send('{line}')")
    monkeypatch.setattr(agent_client, "WORK_SECONDS", 2.0)
    started = time.monotonic()
    with Agent(Sender("", script)) as agent:
        agent.observe(Repro("pass"), Settings())
    assert time.monotonic() - started < 30


WRONG_DIGESTS = {
    "none": "sys.stdout.write(TEXT)",
    "empty": "sys.stdout.write(' ' + TEXT)",
    "zeros": "sys.stdout.write('0' * 64 + ' ' + TEXT)",
    "unkeyed": "import hashlib; sys.stdout.write(hashlib.sha256(TEXT.encode()).hexdigest() + ' ' + TEXT)",
    "without-number": "sys.stdout.write(hmac.new(key, TEXT.encode(), 'sha256').hexdigest() + ' ' + TEXT)",
    "other-key": "key = bytes(32); send(TEXT)",
    "other-number": "count = 0; send(TEXT)",
    "other-text": "sys.stdout.write(hmac.new(key, b'1 x', 'sha256').hexdigest() + ' ' + TEXT)",
}


@pytest.mark.parametrize("act", WRONG_DIGESTS.values(), ids=WRONG_DIGESTS)
def test_a_right_answer_with_a_wrong_digest(act: str) -> None:
    act = f"TEXT = eval(sys.argv[1]); {act}; sys.stdout.flush()"
    with Agent(Sender(answered(RIGHT), _SENDER.replace("send(eval(sys.argv[1]))", act))) as agent:
        untestable = find_untestable(agent.observe(Repro("pass"), Settings()))
    assert untestable is not None
    assert untestable.reason == "forged-answer"


def test_an_answer_counts_once() -> None:
    again = "send(eval(sys.argv[1])); line = hmac.new(key, b'1 ' + eval(sys.argv[1]).encode(), 'sha256').hexdigest()"
    again += " + ' ' + eval(sys.argv[1]); sys.stdout.write(line); sys.stdout.flush()"
    with Agent(Sender(answered(RIGHT), _SENDER.replace("send(eval(sys.argv[1]))", again))) as agent:
        assert find_untestable(agent.observe(Repro("pass"), Settings())) is None
        untestable = find_untestable(agent.observe(Repro("pass"), Settings()))
    assert untestable is not None
    assert untestable.reason == "forged-answer"


@pytest.mark.slow
def test_an_agent_that_is_silent_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_client, "SILENCE_SECONDS", 1.0)
    started = time.monotonic()
    with Agent(Sender("__import__('time').sleep(1000)")) as agent:
        seen = agent.observe(Repro("pass"), Settings())
    assert seen.eager.how == "lost"
    assert "silent" in seen.notes[0]
    assert time.monotonic() - started < 20


@pytest.mark.parametrize("first", ["hello", "[]", '{"ready": []}', '{"ready": 1e999}', "[" * 100_000])
def test_a_first_line_that_is_no_greeting(first: str) -> None:
    script = _SENDER.replace("""'{"ready": {}}\\n'""", repr(first + "\n"))
    with Agent(Sender("", script)) as agent, pytest.raises(AgentFailed):
        agent.start()
