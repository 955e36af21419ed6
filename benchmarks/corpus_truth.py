"""Asks the probe about every script of a corpus on several torches and prints its verdicts beside the truth.

    python benchmarks/corpus_truth.py CORPUS --python VENV/bin/python [--python ...] [--case NAME] [--journal FILE]

A corpus is a folder of folders, each with ``repro.py``, sometimes ``large.py``, and ``truth.json`` (``truth`` and
``large_truth``: release -> ``{"result": "fail" | "pass" | "skip"}``). Each Python brings one installed torch. A
script's mismatch is taken on the newest of them that shows one and asked for, with tolerance, on all others: ``same``
where the truth says fail, ``none`` where it says pass, no evidence where it says skip. With ``--journal`` a run goes on
where an earlier one stopped.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.version import Version

from torchbisect.containers.cache import Cache
from torchbisect.containers.indexes import Indexes
from torchbisect.containers.interpreters import Interpreter
from torchbisect.containers.venvs import Venvs, installed_build
from torchbisect.probe.client import Limits
from torchbisect.probe.journal import Journal
from torchbisect.probe.judging import Mismatch
from torchbisect.probe.matching import Strictness
from torchbisect.probe.probe import Probe
from torchbisect.probe.repro import Repro
from torchbisect.probe.verdict import Answer, Verdict

_EXPECTED = {"fail": (Answer.SAME,), "pass": (Answer.NONE,), "skip": (Answer.UNTESTABLE, Answer.OTHER)}
_PATIENT = Limits(eager=120.0, compiled_floor=240.0)


@dataclass(frozen=True)
class Script:
    """One script of the corpus with its truth over releases."""

    name: str
    repro: Repro
    truth: dict[str, str]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--python", action="append", required=True, help="an interpreter with a torch")
    parser.add_argument("--case", action="append", help="only the cases whose name has this in it")
    parser.add_argument("--journal", type=Path)
    options = parser.parse_args(arguments)
    scripts = [script for script in _scripts(options.corpus) if _wanted(script, options.case)]
    with tempfile.TemporaryDirectory() as cache:
        probes = _probes(options.python, Path(cache), Journal(options.journal))
        wrong = sum(_judge(script, probes) for script in scripts)
        for probe in probes.values():
            probe.close()
    print(f"{wrong} wrong of {len(scripts)} scripts on {', '.join(probes)}")
    return 1 if wrong else 0


def _wanted(script: Script, cases: Sequence[str] | None) -> bool:
    return not cases or any(case in script.name for case in cases)


def _scripts(corpus: Path) -> Iterator[Script]:
    for folder in sorted(path for path in corpus.iterdir() if (path / "truth.json").exists()):
        facts = json.loads((folder / "truth.json").read_text())
        for name, key in (("repro.py", "truth"), ("large.py", "large_truth")):
            if (folder / name).exists() and facts.get(key):
                truth = {build: entry["result"] for build, entry in facts[key].items()}
                yield Script(f"{folder.name}/{name}", Repro((folder / name).read_text(), name=name), truth)


def _probes(pythons: Sequence[str], cache: Path, journal: Journal) -> dict[str, Probe]:
    """A probe for each Python, newest torch first."""
    found = []
    for python in pythons:
        interpreter = Interpreter.of(python)
        build = installed_build(interpreter)
        environment = Venvs(Cache(cache), interpreter, Indexes.gather()).environment(build)
        found.append((Version(build.version), build.name, Probe(environment, journal, _PATIENT)))
    return {name: probe for _, name, probe in sorted(found, key=lambda item: item[0], reverse=True)}


def _judge(script: Script, probes: dict[str, Probe]) -> int:
    """Print one line for each build; the number of verdicts that the truth contradicts."""
    mismatch: Mismatch | None = None
    wrong = 0
    for build, probe in probes.items():
        if build not in script.truth:
            continue
        started = time.monotonic()
        own = probe.mismatch(script.repro)
        if mismatch is None:
            mismatch = own
        verdict = _verdict(script, probe, mismatch)
        right = verdict.answer in _EXPECTED[script.truth[build]]
        wrong += not right
        words = f"{verdict.answer} {verdict.reason or ''} {verdict.detail}"[:170]
        took = time.monotonic() - started
        print(f"{'' if right else 'WRONG'!s:5} {script.name:36} {build:8} {script.truth[build]:4} {took:5.1f}s {words}")
        sys.stdout.flush()
    return wrong


def _verdict(script: Script, probe: Probe, mismatch: Mismatch | None) -> Verdict:
    if mismatch is not None:
        return probe.ask(script.repro, mismatch.signature, strictness=Strictness.TOLERANT)
    trouble = probe.trouble(script.repro)
    if trouble is not None:
        return Verdict(Answer.UNTESTABLE, trouble.reason, trouble.detail)
    return Verdict(Answer.NONE)


if __name__ == "__main__":
    raise SystemExit(main())
