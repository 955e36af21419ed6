"""The options of a run: checked once, frozen, and written back as the command that repeats the run."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path

from torchbisect.core.errors import InputError
from torchbisect.core.requirement import parse_requirement
from torchbisect.core.scrub import scrub_secrets
from torchbisect.minimizer.budget import Budget
from torchbisect.pipeline.named_things import check_names
from torchbisect.probe.judge.slowness import Bounds
from torchbisect.probe.limits import Limits
from torchbisect.probe.measure.measure import Measure
from torchbisect.probe.measure.measuring_options import MeasuringOptions

#: In the place of a package: those that the script imports.
AUTO = "auto"
CHANNELS = ("release", "nightly", "commit")
#: The ratio from which on a measured build is worse, where the user names none.
WORSE_BY = 1.2


@dataclass(frozen=True)
class Options:
    """The options of a run.

    Attributes:
        script: the failing script: a file, a notebook, ``FILE::TEST``, ``-`` for standard input, or with ``module`` a
            dotted name; ``None`` where only the user's own test is asked.
        arguments: the arguments of the script.
        module: the script is a module, as with ``python -m``.
        files: further files and folders that the script needs.
        workdir: the working directory of the script; ``None`` for the one of this process.
        typed_input: the data on standard input, for a script that reads them; ``None`` for any other.
        torch: the build where it fails: a version, a date, or ``installed``; ``None`` for the default.
        nearest: if ``torch`` cannot be had, as a nightly that is gone or a build from source, take the nearest build.
        python: the Python that runs scripts and makes environments.
        good: a build where the script works, one end of the search; ``None`` to search for one.
        bad: a build where it fails, the other end of the search; ``None`` for that of ``torch``.
        find: ``regression``, ``fix`` or ``both``.
        channels: the channels to search; empty for as fine as can be reached.
        index_url: the package index, as in pip; ``None`` for the configured one.
        extra_index_urls: further package indexes, as in pip.
        sandbox: ``venv`` or ``docker``.
        image: the container image; ``None`` for the default.
        runtime: the engine's name of the runtime of all containers; ``None`` for the engine's default.
        variant: the variant of the builds, such as ``cpu`` or ``cu126``; ``None`` for the default.
        device: the default device of the script; ``None`` for the script's own.
        git: a clone of PyTorch or the address of one; ``None`` for the public repository.
        packages: further packages that are installed in every environment; ``auto`` stands for the script's imports.
        allow_sdists: build packages that have no wheel from source, which runs their code at the install.
        minimize: shrink the script.
        bisect: search for the builds where it broke and where it was fixed.
        budget: the time or number of questions after which shrinking stops; ``None`` for no limit.
        save_trajectory: keep every smaller script on the way.
        explain: find the conditions of the shrunk script's mismatch.
        emit_test: write the shrunk script as a test of PyTorch's suite too.
        emit_trace: write the structured trace of the shrunk script too.
        test: a command whose exit status is the verdict, as in git bisect run; ``None`` to compare two runs.
        slower_than: the largest ratio of a compiled call's time to that of eager; ``None`` for any.
        max_compile_time: the most seconds that compiling may take; ``None`` for any.
        max_recompiles: the most recompiles; ``None`` for any.
        max_graph_breaks: the most graph breaks; ``None`` for any.
        measure: the number by which builds are compared, as in ``Measure.parsed``; ``None`` to compare with eager.
        worse_by: the ratio from which on a build is worse; ``None`` for ``WORSE_BY``.
        against: the build that others are measured against; ``None`` for that of ``good``.
        jobs: the number of questions asked at once; ``None`` for one build, or two candidates of the minimizer.
        timeout: the most seconds that a run of the script may take, or the test; ``None`` for the default limits.
        repeat: the number of runs behind each answer.
        seed: the seed of every random generator.
        cache_dir: the folder of the environments; ``None`` for the default.
        cache_limit: the most bytes that environments may take on disk; ``None`` for the default.
        plan: print the cost of the search, and do nothing else.
        build_cmd: a command that builds torch at a commit, where its Python files alone do not decide.
        out: the folder of the results.
        as_json: print the report as JSON on standard output.
        verbosity: 1 for ``-v``, -1 for ``-q``, else 0.
        profile: print the time of each stage at the end.
        command: the command that was typed: ``run``, ``check``, ``minimize``, ``explain`` or ``bisect``.
    """

    script: Path | None
    arguments: tuple[str, ...] = ()
    torch: str | None = None
    nearest: bool = False
    python: str = sys.executable
    good: str | None = None
    bad: str | None = None
    find: str = "both"
    channels: tuple[str, ...] = ()
    index_url: str | None = None
    extra_index_urls: tuple[str, ...] = ()
    sandbox: str = "venv"
    image: str | None = None
    runtime: str | None = None
    variant: str | None = None
    device: str | None = None
    git: str | None = None
    packages: tuple[str, ...] = ()
    allow_sdists: bool = False
    minimize: bool = True
    bisect: bool = True
    budget: Budget | None = None
    save_trajectory: bool = False
    explain: bool = False
    emit_test: bool = False
    emit_trace: bool = False
    test: str | None = None
    slower_than: float | None = None
    max_compile_time: float | None = None
    max_recompiles: int | None = None
    max_graph_breaks: int | None = None
    measure: str | None = None
    worse_by: float | None = None
    against: str | None = None
    jobs: int | None = None
    timeout: float | None = None
    repeat: int = 1
    seed: int = 0
    cache_dir: Path | None = None
    cache_limit: int | None = None
    plan: bool = False
    build_cmd: str | None = None
    out: Path = Path("torchbisect-out")
    as_json: bool = False
    verbosity: int = 0
    profile: bool = False
    command: str = "run"
    module: bool = False
    files: tuple[str, ...] = ()
    workdir: Path | None = None
    typed_input: bytes | None = None

    @property
    def bounds(self) -> Bounds:
        """The bounds on time, recompiles and graph breaks."""
        return Bounds(self.slower_than, self.max_compile_time, self.max_recompiles, self.max_graph_breaks)

    @property
    def scope(self) -> str:
        """Whatever of the environments decides how a script runs there; part of the keys of answers."""
        return " ".join((self.sandbox, self.image or "", self.runtime or "", *self.packages))

    @property
    def measuring(self) -> MeasuringOptions | None:
        """The question of a measured search; ``None`` where compiled code is compared with eager."""
        if self.measure is None:
            return None
        return MeasuringOptions(
            Measure.parsed(self.measure),
            WORSE_BY if self.worse_by is None else self.worse_by,
            self.test,
            str(Path.cwd()) if self.test is not None else None,
            self.timeout,
            self.scope,
        )

    @property
    def limits(self) -> Limits:
        """The limits of every run of a script."""
        if self.timeout is None:
            return Limits()
        return Limits(self.timeout, compiled_floor=self.timeout, compiled_cap=max(self.timeout, Limits.compiled_cap))

    @property
    def candidates(self) -> int:
        """The number of candidates, or of builds without an install, asked at once; 1 if one disturbs another."""
        if self.bounds or self.measure or (self.test is not None and self.jobs is None):
            # Two runs at once disturb each other's times, and a user's test may write to the same files.
            return 1
        return self.jobs or min(2, os.cpu_count() or 1)


_SINGLE = """
torch good bad find python index_url sandbox image runtime variant device git build_cmd budget test slower_than
max_compile_time max_recompiles max_graph_breaks measure worse_by against jobs timeout repeat seed cache_dir cache_limit
"""


def repeat_command(options: Options, script: str | None, variables: Mapping[str, str] | None = None) -> str:
    """Return the command line that repeats a run, quoted for a shell, with only what differs from the defaults.

    Its addresses are without users and passwords. ``variables`` are those of the user's shell that the run used.
    """
    defaults = {field.name: field.default for field in fields(Options)}
    words = ["torchbisect", "check" if options.command == "suite" else options.command]
    for name in _SINGLE.split():
        value = getattr(options, name)
        if value != defaults[name]:
            words += [f"--{name.replace('_', '-')}", _written(value)]
    for name, flag in (
        ("channels", "--channel"),
        ("extra_index_urls", "--extra-index-url"),
        ("packages", "--with"),
        ("files", "--files"),
    ):
        for value in getattr(options, name):
            words += [flag, value]
    words += ["--nearest"] if options.nearest else []
    words += ["--allow-sdists"] if options.allow_sdists else []
    words += ["--save-trajectory"] if options.save_trajectory else []
    words += ["--emit-test"] if options.emit_test else []
    words += ["--emit-trace"] if options.emit_trace else []
    if options.command == "run":
        words += [flag for flag, on in (("--no-minimize", options.minimize), ("--no-bisect", options.bisect)) if not on]
        words += ["--explain"] if options.explain else []
    if script is not None:
        words += [
            *(["-m"] if options.module else []),
            script,
            *(["--"] if options.arguments else []),
            *options.arguments,
        ]
    settings = [f"{name}={shlex.quote(scrub_secrets(value))}" for name, value in (variables or {}).items()]
    return " ".join([*settings, shlex.join(map(scrub_secrets, words))])


def measuring_command(options: Options, script: str, arguments: tuple[str, ...] = ()) -> str:
    """Return the command that measures a shrunk script of a run on the same two builds."""
    kept = replace(
        options,
        command="check",
        arguments=arguments,
        module=False,
        files=() if not arguments else options.files,
        torch=options.torch or options.bad,
        against=options.against or options.good,
        worse_by=WORSE_BY if options.worse_by is None else options.worse_by,
        good=None,
        bad=None,
        find="both",
        channels=(),
        budget=None,
        save_trajectory=False,
        emit_trace=False,
    )
    return repeat_command(kept, script)


def _written(value: object) -> str:
    """Write a value as a user types it: ``2`` for 2.0, and every digit of 0.125."""
    return str(value).removesuffix(".0") if isinstance(value, float) else str(value)


def check_options(options: Options) -> Options:
    """Return the options, with each package in its normal form.

    Raises ``InputError`` if they don't go together or a value can't be used.
    """
    _check_question(options)
    check_names({field.name: getattr(options, field.name) for field in fields(options)})
    if options.image is not None and options.sandbox != "docker":
        raise InputError("--image is for --sandbox docker: add that, or leave --image out")
    if options.runtime is not None and options.sandbox != "docker":
        raise InputError("--runtime is for --sandbox docker: add that, or leave --runtime out")
    if options.cache_limit is not None and options.sandbox == "docker":
        raise InputError("--cache-limit is for --sandbox venv: leave it out, and use torchbisect cache --docker")
    if options.build_cmd is not None and options.sandbox == "docker":
        raise InputError("--build-cmd is for --sandbox venv: a container does not get what it builds; leave one out")
    if os.path.exists(options.out) and not os.path.isdir(options.out):
        raise InputError(f"--out {options.out}: this is a file and not a folder; name another folder")
    packages = tuple(parse_requirement(package, sdists=options.allow_sdists) for package in options.packages)
    if (is_test(options.script) or options.command == "suite") and not any(
        package.startswith("pytest") for package in packages
    ):
        packages = (*packages, "pytest")
    if options.emit_test and not any(package.startswith("expecttest") for package in packages):
        packages = (*packages, "expecttest")  # imported by torch.testing._internal
    return replace(options, packages=packages)


def is_test(script: Path | None) -> bool:
    """Return True for a script that names a test, as pytest does: ``FILE::TEST``."""
    return script is not None and "::" in str(script) and not os.path.exists(script)


def _check_question(options: Options) -> None:
    """Check that there is a script, a test, or both."""
    check_measuring(options)
    if options.test is None:
        if options.script is None:
            raise InputError("name the script that fails, or give a test of your own with --test CMD")
        return
    if not options.test.strip():
        raise InputError("--test: the command is empty; write --test 'sh test.sh', say")
    if options.bounds:
        raise InputError("--test: its exit status alone decides; leave out --slower-than and the --max-... options")
    if options.script is None and options.command in ("minimize", "explain"):
        raise InputError("there is nothing to shrink: name the script that the test runs as $TORCHBISECT_SCRIPT")
    if options.arguments:
        raise InputError(
            "arguments after -- are for a script that torchbisect runs: write them into the --test command"
        )


def check_measuring(options: Options) -> None:
    """Check the options of a measured search. Raises ``InputError`` if they don't go together."""
    if options.measure is None:
        if options.worse_by is not None or options.against is not None:
            raise InputError("--worse-by and --against are for --measure: add --measure time, say")
        return
    measure, worse_by = Measure.parsed(options.measure), options.worse_by
    if options.command not in ("run", "check", "minimize", "bisect"):
        raise InputError("--measure is for torchbisect run, check, minimize and bisect: type one of these")
    if options.explain:
        raise InputError("--explain compares compiled code with eager, and --measure compares builds: leave one out")
    if options.emit_test:
        raise InputError("--emit-test writes an assertion, and a number that became worse has none: leave one out")
    if options.against is None and options.good is None:
        raise InputError("--measure compares builds: name the other one with --against BUILD, or with --good BUILD")
    if options.bounds:
        raise InputError("--measure compares builds, and --slower-than and the --max-... options compare with eager")
    if options.repeat > 1 or (options.jobs or 1) > 1:
        raise InputError(
            "--measure runs as often as the answer needs, one run at a time: leave out --repeat and --jobs"
        )
    if worse_by is not None and (worse_by == 1 or (worse_by < 1 and not measure.printed)):
        raise InputError(
            f"--worse-by {worse_by:g}: a build is worse from this ratio on, such as 1.2; below 1 only for a "
            "metric:NAME that should be high"
        )
    if options.test is not None and not (measure.printed or measure.name == "time"):
        raise InputError("--test with --measure: of a command only time and metric:NAME can be measured")
