"""Shrinks large scripts with torchbisect and with the peers that are installed, all through the same oracle.

    python benchmarks/minimize.py --python PATH [--seconds 300] [--only NAME] [--tools a,b] [--keep FOLDER] [FOLDER ...]

PATH is a Python that has the failing torch; given more than once, each script is taken to the first that shows its
mismatch. A folder holds ``NAME.py`` beside ``NAME.minimal.py``, or
``NAME/large.py`` beside ``NAME/minimal.py``; the default is ``benchmarks/large``. Peers that are not installed are
left out and named: pysource-minimize, shrinkray, lithium (lithium-reducer), picire, cvise. Prints a table of nodes,
bytes, questions and seconds; nodes are also given as a multiple of the script that a person wrote. A peer's row also
says how many times as large as torchbisect's its result is, and how many times as long it took to get there: until its
best result, against until torchbisect's was no longer than that. ``--keep`` writes each result to a folder as
``NAME.TOOL.py``.
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
from pathlib import Path

from torchbisect.containers.index.indexes import Indexes
from torchbisect.containers.python.interpreter import Interpreter
from torchbisect.containers.store.cache import Cache
from torchbisect.containers.venv.environments import VenvEnvironments
from torchbisect.core.build import Build, Channel
from torchbisect.core.repro import Repro, Settings
from torchbisect.core.verdict import Verdict
from torchbisect.minimizer.minimize import Budget, minimize
from torchbisect.minimizer.syntax.backend import with_backend
from torchbisect.pipeline.options import Options
from torchbisect.probe.journal import Journal
from torchbisect.probe.judge.signature import Signature
from torchbisect.probe.pool import Pool
from torchbisect.probe.probe import Probe
from torchbisect.probe.question import Question

HERE = Path(__file__).resolve().parent
LADDER = ("eager", "aot_eager", "aot_eager_decomp_partition", "inductor")
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


@dataclass(frozen=True)
class Case:
    """A large script, and what a person made of it."""

    name: str
    large: str
    minimal: str


@dataclass
class Oracle:
    """The one question, for every tool; keeps the smallest text that it said yes to."""

    probe: Probe
    signature: Signature
    finishes: bool
    deadline: float
    best: str
    began: float
    best_after: float = 0.0
    asked: int = 0

    def __call__(self, text: str) -> Verdict:
        self.asked += 1
        verdict = self.probe.ask(self.question(text))
        if verdict.same and len(text) < len(self.best):
            self.best, self.best_after = text, time.monotonic() - self.began
        return verdict

    def question(self, text: str) -> Question:
        """What is asked about a text."""
        return Question(Repro(text), self.signature, eager_must_succeed=self.finishes, reuse_kernels=True)

    def same(self, text: str) -> bool:
        """For tools that want yes or no; what isn't Python isn't asked."""
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
        """Its line of the table, with how it compares to torchbisect's row."""
        size = f"{self.nodes} | {self.times:.2f} | {len(self.result.encode())}"
        line = f"| {self.case} | {self.tool} | {size} | {self.asked} | {self.seconds:.0f} |"
        if ours is None or ours is self:
            return f"{line} | |"
        (took, reached) = self.steps[-1] if self.steps else (self.seconds, len(self.result))
        sooner = next((seconds for seconds, size in ours.steps if size <= reached), ours.seconds)
        return f"{line} {self.nodes / ours.nodes:.1f} | {took / max(sooner, 0.1):.1f} |"


def cases(folders: list[Path]) -> Iterator[Case]:
    """Every large script that has a minimal one beside it."""
    for folder in folders:
        for small in sorted(folder.glob("*.minimal.py")):
            name = small.name.removesuffix(".minimal.py")
            yield Case(name, (folder / f"{name}.py").read_text(), small.read_text())
        for small in sorted(folder.glob("*/minimal.py")):
            yield Case(small.parent.name, (small.parent / "large.py").read_text(), small.read_text())


def ours(oracle: Oracle, source: str, seconds: float) -> tuple[str, tuple[tuple[float, int], ...]]:
    """torchbisect itself, with as many candidates at once as its command has by default; its result, and its steps."""

    def ask(text: str) -> Verdict:
        oracle.asked += 1
        return pool.ask(oracle.question(text))

    with Pool(oracle.probe, Options(script=None).candidates) as pool:
        result = minimize(
            source,
            ask,
            trace=lambda text: pool.alone(lambda one: one.trace(Repro(text))),
            expect=lambda texts: pool.expect(map(oracle.question, texts)),
            budget=Budget(seconds=seconds),
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
    """The oracle on a socket, for tools that run a command for each question."""
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
    """Every tool that is there; those that are not are named on standard error."""
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


def prepared(probe: Probe, case: Case) -> tuple[str, Signature] | None:
    """The script on the cheapest backend that shows its mismatch, and the mismatch's signature."""
    mismatch = probe.mismatch(Repro(case.large))
    if mismatch is None:
        return None
    for backend in LADDER:
        source = with_backend(case.large, backend)
        if source is not None and probe.ask(Question(Repro(source), mismatch.signature, Settings())).same:
            return source, mismatch.signature
    return case.large, mismatch.signature


def measured(
    probes: list[Probe], case: Case, chosen: list[str] | None, seconds: float, same_time: bool
) -> Iterator[Row]:
    """Each tool on one case; a journal of its own each, so that none profits from another's questions."""
    started = next(((probe, start) for probe in probes if (start := prepared(probe, case)) is not None), None)
    if started is None:
        print(f"{case.name}: shows no mismatch here", file=sys.stderr)
        return
    probe, (source, signature) = started
    by_hand, finishes = _nodes(case.minimal), probe.succeeds_in_eager(Repro(source))
    for name in ("torchbisect", *(peers := tools())):
        if chosen and name not in chosen:
            continue
        probe.journal = Journal()
        began = time.monotonic()
        oracle = Oracle(probe, signature, finishes, began + seconds, source, began)
        if name == "torchbisect":
            result, steps = ours(oracle, source, seconds)
        else:
            result = peers[name](oracle, source, seconds)
            steps = ((oracle.best_after, len(oracle.best)),)
        took = time.monotonic() - began
        if name == "torchbisect" and same_time:
            seconds = took
        size = _nodes(result)
        yield Row(case.name, name, size, size / by_hand, result, oracle.asked, took, steps)


def _nodes(text: str) -> int:
    return sum(1 for _ in ast.walk(ast.parse(text)))


def main() -> int:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path, default=[HERE / "large"])
    parser.add_argument("--python", required=True, action="append")
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--only", action="append")
    parser.add_argument("--tools")
    parser.add_argument("--same-time", action="store_true", help="give each peer as long as torchbisect took")
    parser.add_argument("--keep", type=Path)
    arguments = parser.parse_args()
    chosen = arguments.tools.split(",") if arguments.tools else None
    print("| case | tool | nodes | x by hand | bytes | questions | seconds | x as large | x as long |")
    print("|---|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as cache, ExitStack() as stack:
        probes = [stack.enter_context(_probe(Path(cache), python)) for python in arguments.python]
        for case in cases(arguments.folders):
            if arguments.only and case.name not in arguments.only:
                continue
            first = None
            for row in measured(probes, case, chosen, arguments.seconds, arguments.same_time):
                first = row if row.tool == "torchbisect" else first
                print(row.line(first), flush=True)
                if arguments.keep:
                    arguments.keep.mkdir(parents=True, exist_ok=True)
                    (arguments.keep / f"{row.case}.{row.tool}.py").write_text(row.result)
    return 0


@contextmanager
def _probe(cache: Path, python: str) -> Iterator[Probe]:
    """A probe of the torch that a Python has."""
    interpreter = Interpreter.of(python)
    venvs = VenvEnvironments(Cache(cache), interpreter, Indexes.from_configuration())
    try:
        with Probe(venvs.environment(Build(str(interpreter.installed_torch), Channel.INSTALLED)), Journal()) as probe:
            yield probe
    finally:
        venvs.close()


if __name__ == "__main__":
    sys.exit(main())
