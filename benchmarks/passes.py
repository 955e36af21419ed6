"""Measure each pass of the minimizer by leaving it out.

    python benchmarks/passes.py --python PATH [--only NAME] [--passes a,b] [--journal FILE] [FOLDER ...]

PATH is a Python with a torch that shows the mismatch. It may be given several times: each script is then run with the
first one that shows its mismatch. A folder holds ``NAME.py`` beside ``NAME.minimal.py``, or ``NAME/large.py`` beside
``NAME/minimal.py``; the default is ``benchmarks/large``. ``--only`` chooses a script, and may be given several times.

Each script is reduced with all passes, and once more without each pass. Prints a table with a row a pass: the change in
nodes and bytes of the results, in questions and in seconds when the pass is left out, over all scripts, and in the
number of results that draw other numbers in each run. A positive number is what the pass wins. The last column names
the scripts whose result changes in size.

All reductions share one journal, so a question is run once. Its seconds count in every reduction that asks it.
``--journal`` keeps the answers in a file, with which an interrupted measurement continues.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

from minimizer_cases import LARGE, Case, StartingPoint, cases, probe_of, starting_point

from torchbisect.core.python_text import parse_python
from torchbisect.core.repro import Repro
from torchbisect.core.verdict import Verdict
from torchbisect.minimizer import minimize as minimizer
from torchbisect.minimizer.minimize import SCHEDULE, Budget, Schedule
from torchbisect.minimizer.syntax.random_numbers import is_seeded, random_constructors
from torchbisect.probe.journal import Journal


@dataclass(frozen=True)
class Row:
    """One reduction of one script.

    Attributes:
        case: the script's name.
        left_out: the pass that was left out; empty if none was.
        nodes, bytes: of the result's syntax tree, and of its text.
        questions: how many candidates were asked about.
        seconds: that the answers took when they were first given.
        draws: the result draws random numbers without a seed, so that under plain Python it shows the mismatch by luck.
        accepted: the passes that had a candidate accepted.
    """

    case: str
    left_out: str
    nodes: int
    bytes: int
    questions: int
    seconds: float
    draws: bool = False
    accepted: frozenset[str] = frozenset()


def reduced(begin: StartingPoint, case: Case, left_out: str, most: int) -> Row:
    """Reduce a script without one pass, asking at most so many questions."""
    seconds = 0.0

    def ask(text: str) -> Verdict:
        nonlocal seconds
        verdict = begin.probe.ask(begin.question(text))
        seconds += verdict.seconds
        return verdict

    with patch.object(minimizer, "SCHEDULE", SCHEDULE.without(left_out)):
        result = minimizer.minimize(
            begin.source, ask, trace=lambda text: begin.probe.trace(Repro(text)), budget=Budget(questions=most)
        )
    accepted = frozenset(Schedule.module_of(name) for name, item in result.statistics.items() if item.accepted)
    tree = parse_python(result.source)
    draws = bool(random_constructors(tree)) and not is_seeded(tree)
    return Row(case.name, left_out, result.nodes, result.bytes, result.asked, seconds, draws, accepted)


def measured(begin: StartingPoint, case: Case, passes: list[str]) -> Iterator[Row]:
    """Reduce a script with all passes, then without each one."""
    whole = reduced(begin, case, "", most=10**6)
    yield whole
    for name in passes:
        # Without a pass a reduction may end in many small steps; what is left by then is telling enough.
        row = reduced(begin, case, name, most=5 * whole.questions)
        print(f"{case.name} without {name}: {row.nodes - whole.nodes:+} nodes", file=sys.stderr, flush=True)
        yield row


def table(rows: list[Row]) -> Iterator[str]:
    """Return the lines of the table, the pass that wins most nodes first."""
    whole = {row.case: row for row in rows if not row.left_out}
    nodes, questions = (sum(getattr(row, name) for row in whole.values()) for name in ("nodes", "questions"))
    seconds = sum(row.seconds for row in whole.values())
    yield f"With all passes: {nodes} nodes, {questions} questions, {seconds:.0f} seconds over {len(whole)} scripts."
    yield ""
    yield "| without | nodes | bytes | questions | seconds | random | scripts that use it | whose result changes |"
    yield "|---|---|---|---|---|---|---|---|"
    lines = []
    for name in dict.fromkeys(row.left_out for row in rows if row.left_out):
        pairs = [(row, whole[row.case]) for row in rows if row.left_out == name]
        more = sum(row.nodes - base.nodes for row, base in pairs)
        longer = sum(row.bytes - base.bytes for row, base in pairs)
        asked = sum(row.questions - base.questions for row, base in pairs)
        took = sum(row.seconds - base.seconds for row, base in pairs)
        random = sum(row.draws - base.draws for row, base in pairs)
        used = sum(name in base.accepted for _, base in pairs)
        changed = [f"{row.case} {row.nodes - base.nodes:+}" for row, base in pairs if row.nodes != base.nodes]
        won = f"{more:+} | {longer:+} | {asked:+} | {took:+.0f} | {random:+}"
        lines.append((more, f"| {name} | {won} | {used} | {', '.join(changed)} |"))
    yield from (line for _, line in sorted(lines, reverse=True))


def main() -> int:
    """Run the reductions and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path, default=[LARGE])
    parser.add_argument("--python", required=True, action="append")
    parser.add_argument("--only", action="append")
    parser.add_argument("--passes")
    parser.add_argument("--journal", type=Path)
    arguments = parser.parse_args()
    passes = arguments.passes.split(",") if arguments.passes else list(SCHEDULE.modules)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as cache, ExitStack() as stack:
        journal = Journal(arguments.journal)
        probes = [stack.enter_context(probe_of(Path(cache), python, journal)) for python in arguments.python]
        for case in cases(arguments.folders):
            if arguments.only and case.name not in arguments.only:
                continue
            begin = starting_point(probes, case)
            if begin is None:
                print(f"{case.name}: shows no mismatch here", file=sys.stderr)
            else:
                rows += measured(begin, case, passes)
    print("\n".join(table(rows)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
