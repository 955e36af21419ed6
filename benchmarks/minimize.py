"""Shrink large scripts with torchbisect and with the peers that are installed, through the same oracle.

    python benchmarks/minimize.py --python PATH [--seconds 300] [--only NAME] [--tools a,b] [--keep FOLDER] [FOLDER ...]
    python benchmarks/minimize.py --python PATH --check [--tools a,b] [--journal FILE] [--keep FOLDER] [FOLDER ...]
    python benchmarks/minimize.py --python PATH --generated BUG,BUG:FIRST-LAST|all:test [... as with --check]

PATH is a Python with a torch that shows the mismatch. It may be given several times: each script is then run with the
first one that shows its mismatch. A folder holds ``NAME.py`` beside ``NAME.minimal.py``, or ``NAME/large.py`` beside
``NAME/minimal.py``; the default is ``benchmarks/large``. Peers: pysource-minimize, shrinkray, lithium
(lithium-reducer), picire, cvise. Those that are not installed are named on standard error and left out.

Prints a table of nodes, bytes, questions and seconds. "x by hand" divides the nodes by those of the script that a
person wrote. A peer's row has two more columns. "x as large" divides its nodes by those of torchbisect's result. "x as
long" divides the time until its best result by the time after which torchbisect's best was no longer than that.
``--keep`` writes each result to a folder as ``NAME.TOOL.py``.

``--check`` prints if each result of torchbisect stands alone and shows the mismatch of its script, and the median and
95th percentile of all; ``whole_times`` counts the assertion with which it stands alone. ``--generated`` does so with
programs that ``generate.py`` grows from these seeds. Each peer that ``--tools`` names then has as long as torchbisect
took, and the best one is named beside it. ``--journal`` keeps torchbisect's answers in a file, so that a second run
only asks what is new, in less time than the peers would need.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import generated_results
from minimizer_cases import LARGE, Case, StartingPoint, cases, count_nodes, probe_of, starting_point

from torchbisect.core.repro import Repro
from torchbisect.core.verdict import Verdict
from torchbisect.minimizer.minimize import Budget, Patience, minimize
from torchbisect.pipeline.options import Options
from torchbisect.probe.journal import Journal
from torchbisect.probe.pool import Pool
from torchbisect.probe.probe import Probe

_CLIENT = """\
import os, socket, sys
with socket.socket(socket.AF_UNIX) as link:
    link.connect(os.environ["TORCHBISECT_ORACLE"])
    link.sendall(os.path.abspath(sys.argv[-1]).encode() + b"\\n")
    sys.exit(0 if link.recv(1) == b"y" else 1)
"""

# The candidate is an argument, or repro.py in the current folder, or comes on standard input.
_TEST = """\
#!/bin/sh
if [ $# -eq 0 ] && [ ! -e repro.py ]; then set -- "$(mktemp)"; cat > "$1"; fi
exec {python} {client} "${{1:-repro.py}}"
"""

_CONDITION = """\
import subprocess
def interesting(arguments, prefix):
    return subprocess.run([{test!r}, arguments[-1]]).returncode == 0
"""


@dataclass
class Oracle:
    """The one question, for every tool. Keeps the smallest text that showed the mismatch."""

    start: StartingPoint
    deadline: float
    best: str
    began: float
    best_after: float = 0.0
    asked: int = 0

    @classmethod
    def begin(cls, start: StartingPoint, seconds: float) -> Oracle:
        """Return an oracle that answers from now on for so many seconds."""
        began = time.monotonic()
        return cls(start, began + seconds, start.source, began)

    def __call__(self, text: str) -> Verdict:
        self.asked += 1
        verdict = self.start.probe.ask(self.start.question(text))
        if verdict.same and len(text) < len(self.best):
            self.best, self.best_after = text, time.monotonic() - self.began
        return verdict

    def same(self, text: str) -> bool:
        """Answer yes or no. A text that is not Python is not asked about."""
        if time.monotonic() > self.deadline:
            return False
        try:
            ast.parse(text)
        except (SyntaxError, ValueError):
            return False
        return self(text).same


@dataclass(frozen=True)
class Row:
    """One tool on one case."""

    case: str
    tool: str
    nodes: int
    times: float
    result: str
    asked: int
    seconds: float
    steps: tuple[tuple[float, int], ...]

    def line(self, ours: Row | None) -> str:
        """Return its line of the table, with how it compares to torchbisect's row."""
        size = f"{self.nodes} | {self.times:.2f} | {len(self.result.encode())}"
        line = f"| {self.case} | {self.tool} | {size} | {self.asked} | {self.seconds:.0f} |"
        if ours is None or ours is self:
            return f"{line} | |"
        (took, reached) = self.steps[-1] if self.steps else (self.seconds, len(self.result))
        sooner = next((seconds for seconds, size in ours.steps if size <= reached), ours.seconds)
        return f"{line} {self.nodes / ours.nodes:.1f} | {took / max(sooner, 0.1):.1f} |"


def ours(oracle: Oracle, source: str, seconds: float) -> tuple[str, tuple[tuple[float, int], ...]]:
    """Run torchbisect with its default number of candidates at once; return its result and its steps."""

    def ask(text: str) -> Verdict:
        oracle.asked += 1
        return pool.ask(oracle.start.question(text))

    with Pool(oracle.start.probe, Options(script=None).candidates) as pool:
        result = minimize(
            source,
            ask,
            trace=lambda text: pool.alone(lambda one: one.trace(Repro(text))),
            expect=lambda texts: pool.expect(map(oracle.start.question, texts)),
            budget=Budget(seconds=seconds),
            patience=Patience(),
        )
    return result.source, tuple((after, size) for _, after, size in result.trajectory)


def pysource_minimize(oracle: Oracle, source: str, seconds: float) -> str:
    """pysource-minimize, through its API."""
    from pysource_minimize import minimize as theirs

    try:
        return str(theirs(source, oracle.same))
    except Exception as error:
        print(f"pysource-minimize: {error!r}"[:200], file=sys.stderr)
        return oracle.best


def by_command(*command: str) -> Callable[[Oracle, str, float], str]:
    """A tool that runs a command on a file.

    ``{test}`` is the command, ``{condition}`` a Python module that runs it (lithium wants one), ``{file}`` the file.
    """

    def run(oracle: Oracle, source: str, seconds: float) -> str:
        with tempfile.TemporaryDirectory() as folder, _listening(oracle, folder) as environment:
            file, test = Path(folder, "repro.py"), Path(folder, "test.sh")
            file.write_text(source)
            client = Path(folder, "client.py")
            client.write_text(_CLIENT)
            test.write_text(_TEST.format(python=sys.executable, client=client))
            test.chmod(0o755)
            condition = Path(folder, "condition.py")
            condition.write_text(_CONDITION.format(test=str(test)))
            filled = [part.format(test=test, condition=condition, file=file) for part in command]
            try:
                done = subprocess.run(
                    filled, cwd=folder, env=environment, timeout=seconds, stdin=subprocess.DEVNULL, capture_output=True
                )
                if done.returncode and not oracle.asked:
                    print(f"{command[0]}: {done.stderr.decode(errors='replace').strip()[-200:]}", file=sys.stderr)
            except subprocess.TimeoutExpired:
                pass
        return oracle.best

    return run


@contextmanager
def _listening(oracle: Oracle, folder: str) -> Iterator[dict[str, str]]:
    """Offer the oracle on a socket, for tools that run a command for each question."""
    with socket.socket(socket.AF_UNIX) as server:
        place = os.path.join(folder, "oracle")
        server.bind(place)
        server.listen()

        def serve() -> None:
            while True:
                try:
                    link, _ = server.accept()
                except OSError:
                    return
                with link:
                    path = link.makefile().readline().strip()
                    try:
                        text = Path(path).read_text(errors="replace")
                    except OSError:
                        text = "("
                    link.sendall(b"y" if oracle.same(text) else b"n")

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield {**os.environ, "TORCHBISECT_ORACLE": place}
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join(timeout=60)


def tools() -> dict[str, Callable[[Oracle, str, float], str]]:
    """Find the tools that are installed. Name the others on standard error."""
    found: dict[str, Callable[[Oracle, str, float], str]] = {}
    if importlib.util.find_spec("pysource_minimize"):
        found["pysource-minimize"] = pysource_minimize
    commands = {
        "shrinkray": ("shrinkray", "--parallelism=1", "--timeout=60", "{test}", "{file}"),
        "lithium": ("lithium", "{condition}", "{file}"),
        "picire": ("picire", "--input={file}", "--test={test}", "--atom=line", "-j=1"),
        "cvise": ("cvise", "--n=1", "--timeout=60", "{test}", "repro.py"),
    }
    for name, command in commands.items():
        if shutil.which(command[0]):
            found[name] = by_command(*command)
    missing = ({"pysource-minimize"} | set(commands)) - set(found)
    if missing:
        print("not installed:", ", ".join(sorted(missing)), file=sys.stderr)
    return found


def measured(
    probes: list[Probe], case: Case, chosen: list[str] | None, seconds: float, same_time: bool
) -> Iterator[Row]:
    """Run each tool on one case, with a journal of its own, so that none profits from another's questions."""
    begin = starting_point(probes, case)
    if begin is None:
        print(f"{case.name}: shows no mismatch here", file=sys.stderr)
        return
    source, by_hand = begin.source, count_nodes(case.minimal)
    for name in ("torchbisect", *(peers := tools())):
        if chosen and name not in chosen:
            continue
        begin.probe.journal = Journal()
        oracle = Oracle.begin(begin, seconds)
        if name == "torchbisect":
            result, steps = ours(oracle, source, seconds)
        else:
            result = peers[name](oracle, source, seconds)
            steps = ((oracle.best_after, len(oracle.best)),)
        took = time.monotonic() - oracle.began
        if name == "torchbisect" and same_time:
            seconds = took
        size = count_nodes(result)
        yield Row(case.name, name, size, size / by_hand, result, oracle.asked, took, steps)


def _reduced(begin: StartingPoint, seconds: float) -> tuple[str, int]:
    oracle = Oracle.begin(begin, seconds)
    return ours(oracle, begin.source, seconds)[0], oracle.asked


def _reduced_by_peer(begin: StartingPoint, seconds: float, peer: Callable[[Oracle, str, float], str]) -> str:
    """Run a peer with a journal of its own, so that it does not profit from other questions."""
    kept, begin.probe.journal = begin.probe.journal, Journal()
    try:
        return peer(Oracle.begin(begin, seconds), begin.source, seconds)
    finally:
        begin.probe.journal = kept


def main() -> int:
    """Run the tools and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path, default=[LARGE])
    parser.add_argument("--python", required=True, action="append")
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--only", action="append")
    parser.add_argument("--tools")
    parser.add_argument("--same-time", action="store_true", help="give each peer as long as torchbisect took")
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--generated")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--journal", type=Path)
    arguments = parser.parse_args()
    chosen = arguments.tools.split(",") if arguments.tools else None
    with tempfile.TemporaryDirectory() as cache, ExitStack() as stack:
        journal = Journal(arguments.journal)
        probes = [stack.enter_context(probe_of(Path(cache), python, journal)) for python in arguments.python]
        found = [case for case in cases(arguments.folders) if not arguments.only or case.name in arguments.only]
        if arguments.generated or arguments.check:
            reduce = partial(_reduced, seconds=arguments.seconds)
            programs = generated_results.cases(arguments.generated) if arguments.generated else found
            wanted = {name: run for name, run in tools().items() if name in chosen} if chosen else {}
            peers = {name: partial(_reduced_by_peer, peer=run) for name, run in wanted.items()}
            generated_results.print_table(probes, programs, reduce, peers, arguments.keep)
            return 0
        print("| case | tool | nodes | x by hand | bytes | questions | seconds | x as large | x as long |")
        print("|---|---|---|---|---|---|---|---|---|")
        for case in found:
            first = None
            for row in measured(probes, case, chosen, arguments.seconds, arguments.same_time):
                first = row if row.tool == "torchbisect" else first
                print(row.line(first), flush=True)
                if arguments.keep:
                    arguments.keep.mkdir(parents=True, exist_ok=True)
                    (arguments.keep / f"{row.case}.{row.tool}.py").write_text(row.result)
    return 0


if __name__ == "__main__":
    sys.exit(main())
