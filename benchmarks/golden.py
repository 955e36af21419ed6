"""Record what torchbisect does, question by question, and compare two such records.

    python benchmarks/golden.py record FOLDER [--corpus CORPUS] [--cache-dir DIR] [--only NAME] [--torch 2.8.0]
    python benchmarks/golden.py compare OLD NEW [--renamed OLD=NEW ...]

A change that should leave behaviour as it is must leave the record as it is. ``record`` writes one JSON file a
script: the example through ``run``; the scripts of ``benchmarks/large`` and of a corpus folder, if one is given,
through ``minimize``. Each holds

- the exit code and ``report.json`` without times, dates, versions, paths and logs,
- the text and settings of each question, in the order asked,
- the journal's keys, in order,
- the statistics of each pass of the minimizer, without seconds.

A script already recorded in the folder is passed over, so an interrupted recording continues. Questions are asked one
at a time (``--jobs 1``): with more, the journal's order is that of the answers. ``compare`` prints each difference
and exits 1 if there is one; ``--renamed`` maps the old name of a pass to its new one. Both records must come from one
machine and one version of torchbisect: the journal's keys depend on both.
"""

from __future__ import annotations

import argparse
import difflib
import json
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

from torchbisect.core.errors import Exit, TorchbisectError
from torchbisect.core.verdict import Verdict
from torchbisect.minimizer.minimize import Reduction
from torchbisect.pipeline.options import Options
from torchbisect.pipeline.run import Pipeline
from torchbisect.pipeline.stages import minimize as stage
from torchbisect.probe.oracle import Question
from torchbisect.probe.probe import Probe

ROOT = Path(__file__).resolve().parents[1]
EXAMPLE = ROOT / "examples" / "covariance_head.py"
# Parts of report.json that differ between two runs of the same code.
VOLATILE = frozenset(
    {"seconds", "collect_env", "version", "generated", "started", "finished", "trajectory", "platform", "logs"}
)
NEW_KEYS = {"localisation": "localization"}
ADDRESS = re.compile(r"0x[0-9a-f]{6,}|/tmp/[^\s'\"]+")


@dataclass(frozen=True)
class Case:
    """A script, and the command that it goes through."""

    name: str
    script: Path
    command: str


def cases(corpus: Path | None) -> Iterator[Case]:
    """The example, the large scripts, and a corpus' scripts: ``large.py`` where there is one, else ``repro.py``."""
    yield Case("example", EXAMPLE, "run")
    for script in sorted((ROOT / "benchmarks" / "large").glob("*.py")):
        if not script.name.endswith(".minimal.py"):
            yield Case(script.stem, script, "minimize")
    for folder in sorted(corpus.iterdir()) if corpus is not None else ():
        large, small = folder / "large.py", folder / "repro.py"
        if small.exists():
            yield Case(f"corpus-{folder.name}", large if large.exists() else small, "minimize")


def recorded(case: Case, torch: str, cache: Path | None) -> dict[str, Any]:
    """Everything that one run of a case asked and found."""
    questions: list[dict[str, Any]] = []
    statistics: list[dict[str, Any]] = []
    ask = Probe.ask

    def asking(probe: Probe, question: Question) -> Verdict:
        verdict = ask(probe, question)
        questions.append(
            {
                "build": probe.environment.build.name,
                "settings": question.settings.to_json(),
                "text": question.repro.source,
                "answer": str(verdict.answer),
            }
        )
        return verdict

    def minimized(minimize: Callable[..., Reduction]) -> Callable[..., Reduction]:
        def run(*arguments: Any, **options: Any) -> Reduction:
            reduction = minimize(*arguments, **options)
            rows = {name: [item.asked, item.accepted, item.bytes_won] for name, item in reduction.statistics.items()}
            statistics.append(rows)
            return reduction

        return run

    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "out")
        options = Options(
            case.script, command=case.command, torch=torch, jobs=1, out=out, cache_dir=cache, verbosity=-1
        )
        with patch.object(Probe, "ask", asking), patch.object(stage, "minimize", minimized(stage.minimize)):
            try:
                code = int(Pipeline(options).execute())
            except TorchbisectError as error:
                code = int(error.exit_code)
        report = json.loads((out / "report.json").read_text()) if (out / "report.json").exists() else None
        journal = out / "journal.jsonl"
        keys = [json.loads(line)["key"] for line in journal.read_text().splitlines()] if journal.exists() else []
    return {
        "exit": code,
        "report": stable(report),
        "questions": questions,
        "journal": keys,
        "passes": statistics,
    }


def stable(value: Any) -> Any:
    """A part of a report without what differs between two runs of the same code."""
    if isinstance(value, dict):
        return {key: stable(item) for key, item in value.items() if key not in VOLATILE}
    if isinstance(value, list):
        return [stable(item) for item in value]
    return ADDRESS.sub("ADDRESS", value) if isinstance(value, str) else value


def record(folder: Path, corpus: Path | None, torch: str, cache: Path | None, only: list[str] | None) -> int:
    """Record each case that the folder lacks; an interrupted case is not kept, and ends the recording."""
    folder.mkdir(parents=True, exist_ok=True)
    for case in cases(corpus):
        file = folder / f"{case.name}.json"
        if file.exists() or (only and case.name not in only):
            continue
        found = recorded(case, torch, cache)
        if found["exit"] == Exit.INTERRUPTED:
            return int(Exit.INTERRUPTED)
        file.write_text(json.dumps(found, indent=1) + "\n")
        print(f"{case.name}: exit {found['exit']}, {len(found['questions'])} questions", flush=True)
    return 0


def compare(old: Path, new: Path, renamed: dict[str, str]) -> int:
    """Print every difference between two records, by section; 1 if there is one."""
    names = {file.stem for folder in (old, new) for file in folder.glob("*.json")}
    differing = 0
    for name in sorted(names):
        before, after = (_sections(folder / f"{name}.json", renamed) for folder in (old, new))
        changed = [section for section in before if before[section] != after.get(section)]
        print(f"{name}: {'changed: ' + ', '.join(changed) if changed else 'the same'}")
        for section in changed:
            lines = difflib.unified_diff(before[section], after.get(section, []), "old", "new", lineterm="", n=0)
            print("\n".join(f"    {line[:160]}" for line in list(lines)[2:22]))
        differing += bool(changed)
    print(f"{len(names) - differing} of {len(names)} the same")
    return 1 if differing else 0


def _sections(file: Path, renamed: dict[str, str]) -> dict[str, list[str]]:
    """Return a record's parts as lines, with passes by their new names and older report keys by today's."""
    if not file.exists():
        return {section: ["not recorded"] for section in ("exit", "report", "questions", "journal", "passes")}
    found = stable(json.loads(file.read_text()))
    if found["report"] is not None:
        found["report"] = {NEW_KEYS.get(key, key): part for key, part in found["report"].items()}
    found["passes"] = [_summed(reduction, renamed) for reduction in found["passes"]]
    return {section: json.dumps(part, indent=1, sort_keys=True).splitlines() for section, part in found.items()}


def _summed(reduction: dict[str, list[int]], renamed: dict[str, str]) -> dict[str, list[int]]:
    """Return the statistics by new names; passes that became one are added up."""
    rows: dict[str, list[int]] = {}
    for name, row in reduction.items():
        new = renamed.get(name, name)
        rows[new] = [one + other for one, other in zip(rows.get(new, [0] * len(row)), row)]
    return rows


def main() -> int:
    """Parse the command line and do what it says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    recording = commands.add_parser("record")
    recording.add_argument("folder", type=Path)
    recording.add_argument("--corpus", type=Path)
    recording.add_argument("--cache-dir", type=Path)
    recording.add_argument("--torch", default="2.8.0")
    recording.add_argument("--only", action="append")
    comparing = commands.add_parser("compare")
    comparing.add_argument("old", type=Path)
    comparing.add_argument("new", type=Path)
    comparing.add_argument("--renamed", action="append", default=[], metavar="OLD=NEW")
    given = parser.parse_args()
    if given.command == "record":
        return record(given.folder, given.corpus, given.torch, given.cache_dir, given.only)
    return compare(given.old, given.new, dict(pair.split("=", 1) for pair in given.renamed))


if __name__ == "__main__":
    sys.exit(main())
