"""Asks the probe about every script of a corpus on several torches and prints its verdicts beside the truth.

    python benchmarks/corpus_truth.py CORPUS [--torch VERSION ...] [--case NAME] [--journal FILE] [--cache-dir DIR]

A corpus is a folder of folders, each with ``repro.py``, sometimes ``large.py``, and ``truth.json`` (``truth`` and
``large_truth``: release -> ``{"result": "fail" | "pass" | "skip"}``). The torches are the releases named, by default
all that the truth is known of, each installed in its turn, the newest first. A script's mismatch is taken on the first
that shows one and asked for, with tolerance, on all others: ``same`` where the truth says fail, ``none`` where it says
pass, no evidence where it says skip. With ``--journal`` a run goes on where an earlier one stopped.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import platformdirs
from packaging.version import Version

from torchbisect.containers.index.indexes import Indexes
from torchbisect.containers.python.interpreter import Interpreter
from torchbisect.containers.store.cache import Cache
from torchbisect.containers.venv.environments import VenvEnvironments
from torchbisect.core.build import Build, Channel
from torchbisect.core.repro import Repro
from torchbisect.core.verdict import Answer, Verdict
from torchbisect.probe.journal import Journal
from torchbisect.probe.judge.classify import Mismatch
from torchbisect.probe.judge.matching import Strictness
from torchbisect.probe.limits import Limits
from torchbisect.probe.oracle import Question
from torchbisect.probe.probe import Probe
from torchbisect.probe.probe_options import ProbeOptions

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
    parser.add_argument("--torch", action="append", help="a release")
    parser.add_argument("--case", action="append", help="only the cases whose name has this in it")
    parser.add_argument("--journal", type=Path)
    parser.add_argument("--cache-dir", type=Path, default=Path(platformdirs.user_cache_dir("torchbisect")))
    options = parser.parse_args(arguments)
    scripts = [script for script in _scripts(options.corpus) if _wanted(script, options.case)]
    releases = options.torch or {release for script in scripts for release in script.truth}
    builds = sorted((Build(release, Channel.RELEASE) for release in releases), key=lambda build: Version(build.version))
    venvs = VenvEnvironments(
        Cache(options.cache_dir), Interpreter.of(Path(sys.executable)), Indexes.from_configuration()
    )
    journal, seen, judged, wrong = Journal(options.journal), {}, 0, 0
    for build in reversed(builds):
        with Probe(venvs.environment(build), journal, ProbeOptions(_PATIENT)) as probe:
            for script in (one for one in scripts if build.version in one.truth):
                judged += 1
                wrong += not _judged_right(script, probe, seen)
        venvs.release(build)
    venvs.close()
    print(f"{wrong} wrong of {judged} verdicts on {len(scripts)} scripts and {len(builds)} releases")
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


def _judged_right(script: Script, probe: Probe, seen: dict[str, Mismatch]) -> bool:
    """Print one line; whether the truth agrees. ``seen`` has what each script showed first."""
    build, started = probe.environment.build.version, time.monotonic()
    own = probe.mismatch(script.repro)
    if own is not None:
        seen.setdefault(script.name, own)
    verdict = _verdict(script, probe, seen.get(script.name))
    right = verdict.answer in _EXPECTED[script.truth[build]]
    words = f"{verdict.answer} {verdict.reason or ''} {verdict.detail}"[:170]
    took = time.monotonic() - started
    print(f"{'' if right else 'WRONG'!s:5} {script.name:36} {build:8} {script.truth[build]:4} {took:5.1f}s {words}")
    sys.stdout.flush()
    return right


def _verdict(script: Script, probe: Probe, mismatch: Mismatch | None) -> Verdict:
    if mismatch is not None:
        return probe.ask(Question(script.repro, mismatch.signature, strictness=Strictness.TOLERANT))
    trouble = probe.untestable(script.repro)
    if trouble is not None:
        return Verdict(Answer.UNTESTABLE, trouble.reason, trouble.detail)
    return Verdict(Answer.NONE)


if __name__ == "__main__":
    raise SystemExit(main())
