"""The script, the torch, the variables and the named reason in bodies of every style; the scripts run as they do."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from retold_bodies import RetoldBody, retold_bodies

from torchbisect.cli.commands import main
from torchbisect.triage.issues.body import Issue, read_issue

BODIES = retold_bodies()


def named(one: RetoldBody) -> str:
    return one.name


def test_there_are_at_least_sixty() -> None:
    assert len(BODIES) >= 60


@pytest.mark.parametrize("one", BODIES, ids=named)
def test_a_body_is_read_as_expected(one: RetoldBody) -> None:
    expect, issue = one.expect, read_issue(one.body, one.title)
    assert (issue.script is not None) == expect["script"]
    for words in expect.get("has", ()):
        assert issue.script is not None
        assert words in issue.script.text
    assert issue.torch == expect["torch"]
    for name, versions in (("works", issue.stated.working), ("fails", issue.stated.failing)):
        if name in expect:
            assert list(versions) == expect[name]
    assert dict(issue.variables.used) == expect.get("env", {})
    assert issue.device == expect.get("device", "cpu")
    assert any(expect["missing"] in text for text in issue.missing) if "missing" in expect else issue.runnable


def can_run_here(one: RetoldBody, issue: Issue) -> bool:
    return issue.runnable and issue.device == "cpu" and not (issue.script and issue.script.packages)


RUNNABLE = [one for one in BODIES if can_run_here(one, read_issue(one.body, one.title))]
# Each takes half a minute: all of them run where TORCHBISECT_ALL_BODIES is set.
OFTEN = ("compile-alone", "differs-by-design", "dots-in-comments", "form-usual", "freezing-table", "logs-unfenced")
CHOSEN = [one for one in RUNNABLE if one.name in OFTEN or os.environ.get("TORCHBISECT_ALL_BODIES")]


#: Runs a script as ``python`` does, after the seed that every run of a check has.
SEEDED = (
    "import runpy, sys, torch; torch.manual_seed(0); sys.argv[:] = sys.argv[1:]; "
    "runpy.run_path(sys.argv[0], None, '__main__')"
)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the cache of all checks: what is compiled for every run is compiled once."""
    return tmp_path_factory.mktemp("cache")


@pytest.mark.torch
@pytest.mark.long
@pytest.mark.parametrize("one", CHOSEN, ids=named)
def test_the_verdict_is_that_of_plain_python(one: RetoldBody, tmp_path: Path, cache: Path) -> None:
    """The first script of an issue shows a mismatch if plain Python ends or prints otherwise without torch.compile."""
    issue = read_issue(one.body, one.title)
    assert issue.script is not None
    script, plain = tmp_path / "repro.py", tmp_path / "plain.py"
    script.write_text(issue.script.text)
    # A body may name a line that prints what its own script does not show.
    plain.write_text(f"{issue.script.text}\n{one.expect.get('shown_by', '')}\n")
    is_random = "rand" in issue.script.text and "manual_seed" not in issue.script.text

    def outcome(**variables: str) -> tuple[bool, str]:
        done = subprocess.run(
            [sys.executable, *(["-c", SEEDED] if is_random else []), str(plain)],
            env=os.environ | variables,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        return done.returncode == 0, re.sub(r"0x[0-9a-f]+", "0x", done.stdout)

    eager, compiled = outcome(TORCHDYNAMO_DISABLE="1"), outcome()
    words = ["check", str(script), "--torch", "installed", "--json", "-q", "--out", str(tmp_path / "out")]
    CliRunner().invoke(main, [*words, "--cache-dir", str(cache)])
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    # Where torch.compile is called and its result is not, there is nothing to compare.
    verdict = "none" if "never calls" in (report["reason"] or "") else report["verdict"]
    print(f"{one.name}: {verdict} ({report['reason']}) {eager} {compiled}")
    expected = "untestable" if not eager[0] else "mismatch" if eager != compiled else "none"
    assert verdict == expected
