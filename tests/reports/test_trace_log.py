"""A trace that is given away has no paths and no secrets, and its events still belong to their payloads."""

from __future__ import annotations

import hashlib
import json

from torchbisect.reports.trace_log import names_machine, scrubbed_trace

HEAD = "V1125 02:38:58.120000 31619 torch/_inductor/compile_fx.py:1315] "


def event(payload: str, **fields: object) -> str:
    digest = hashlib.md5(payload.encode()).hexdigest()
    lines = "".join(f"\t{line}\n" for line in payload.split("\n"))
    return f"{HEAD}{json.dumps({**fields, 'has_payload': digest})}\n{lines}"


def test_paths_and_secrets_are_removed_and_digests_made_anew() -> None:
    text = f'{HEAD}{{"str": ["/home/me/venv/lib/python3.11/site-packages/torch/nn/modules/module.py", 3]}}\n'
    text += event(
        "os.environ['TORCH_TRACE'] = '/tmp/me/trace'\n\nx = 'ghp_abcdefghijklmnopqrstuvwxyz0123456789'", name="a"
    )
    text += event("plain", name="b")
    made = scrubbed_trace(text)
    assert "/home/me" not in made
    assert "/tmp/me" not in made
    assert "ghp_" not in made
    assert '["…/torch/nn/modules/module.py", 3]' in made
    lines = made.splitlines()
    assert [line[:1] for line in lines] == ["V", "V", "\t", "\t", "\t", "V", "\t"]
    for head, payload in ((lines[1], lines[2:5]), (lines[5], lines[6:])):
        digest = hashlib.md5("\n".join(line[1:] for line in payload).encode()).hexdigest()
        assert json.loads(head.partition("] ")[2])["has_payload"] == digest
    assert lines[5] + "\n" + lines[6] + "\n" == event("plain", name="b")


def test_a_trace_that_still_names_this_machine_is_known() -> None:
    text = event("torch.load('/home/me/secret/model.pt')", name="a")
    assert names_machine(text)
    assert not names_machine(scrubbed_trace(text))
