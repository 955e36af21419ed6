"""Show what a patch of PyTorch does to a bug: ask scripts on one build, without the patch and with it."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

from torchbisect.bisect.search.evidence import BuildAnswer, BuildStatus
from torchbisect.bisect.sources.history import History
from torchbisect.bisect.sources.patch import Patch, read_patch
from torchbisect.bisect.sources.patched_build import patched_build
from torchbisect.bisect.sources.source_build import CommitBuilder
from torchbisect.containers.environment import Environment, Venv
from torchbisect.containers.store.removal import remove_tree
from torchbisect.containers.store.run_folder import unique_folder
from torchbisect.core.build import Build
from torchbisect.core.errors import InputError, InstallFailed
from torchbisect.core.repro import Repro, Settings
from torchbisect.pipeline.clone import open_history
from torchbisect.pipeline.local_provider import LocalProvider
from torchbisect.pipeline.options import Options
from torchbisect.pipeline.progress import Display
from torchbisect.pipeline.run import OpenProvider
from torchbisect.pipeline.script import opened_repro
from torchbisect.pipeline.search_scope import failing_build
from torchbisect.pipeline.session import Session
from torchbisect.pipeline.stages.observe import Observed, count_runs, observe
from torchbisect.pipeline.verification import Effect, ScriptEffect, Verification
from torchbisect.probe.agent_client import AgentFailed
from torchbisect.probe.judge.matching import Strictness
from torchbisect.probe.oracle import Oracle, Question
from torchbisect.reports import files
from torchbisect.reports.model.report import Report


@dataclass(frozen=True)
class _Asked:
    """A script that is asked, and the name it has in the result."""

    name: str
    repro: Repro


@dataclass(frozen=True)
class _Builds:
    """The two builds that are compared. Only one is open at a time, as both may be built in one place.

    Attributes:
        plain: opens the build as it is.
        patched: opens the build with the patch, and names the files that differ.
    """

    plain: Callable[[], AbstractContextManager[Environment]]
    patched: Callable[[], AbstractContextManager[tuple[Environment, tuple[str, ...]]]]


def verify(
    options: Options,
    name: str,
    *,
    reverted: bool = False,
    also: Sequence[Path] = (),
    open_provider: OpenProvider = LocalProvider,
) -> Verification:
    """Ask a script on a build, and on a copy of the build with a patch applied or reverted.

    Args:
        options: their script is the one with the bug, or a folder with a report, of which the shrunk script is taken,
            and the original too if it stands in one file.
        name: the patch: a file, a commit or a pull request.
        also: further scripts that the patch may break; a folder stands for the scripts in it.

    Raises:
        InputError: a script or the patch can't be used.
        MachineError: this machine can't do its part.
    """
    report = _report_of(options)
    options = with_reported_script(options)
    display = Display(options.verbosity)
    history = functools.cache(lambda: open_history(options, display.result))
    with ExitStack() as stack:
        stack.enter_context(display.working("Verify"))
        patch = read_patch(name, history, mirrored=options.git is not None)
        if options.git is not None:
            patch = replace(patch, objects=history().objects)
        own = [_opened(stack, options, options.script)] if options.script is not None else []
        own += _original(report)
        others = [_opened(stack, replace(options, arguments=()), path) for path in _scripts_in(also)]
        provider = open_provider(options, display)
        stack.callback(provider.close)
        session = Session.open(options, display, provider, display.warn)
        stack.callback(session.workspace.close)
        build = failing_build(options, session.sources, display.warn)
        told = Verification(name, reverted, str(build), patch.python, (), own=len(own), left_out=patch.left_out)
        try:
            if patch.native and options.build_cmd is not None:
                builds = _built_from_source(stack, session, build, patch, history(), reverse=reverted)
            else:
                builds = _on_a_wheel(stack, session, build, patch, reverse=reverted)
            changed, effects = _effects(session, builds, [*own, *others], reverted=reverted)
        except (InstallFailed, AgentFailed) as error:
            needed = isinstance(error, InstallFailed) and error.reason == "needs-build"
            more = "; name a clone of PyTorch with --git, and how to build it with --build-cmd" if needed else ""
            return replace(told, reason=f"{error}{more}")
    return replace(told, files=changed, scripts=tuple(effects))


def with_reported_script(options: Options) -> Options:
    """Return the options; of a folder with a report the shrunk script is taken, and the build where it fails."""
    report = _report_of(options)
    if report is None or options.script is None:
        return options
    minimal = options.script / files.MINIMAL
    if report.minimal is None or report.environment is None or not minimal.is_file():
        raise InputError(f"{options.script} has no {files.MINIMAL}: shrink the script first, or name the script itself")
    return replace(options, script=minimal, torch=options.torch or report.environment.torch)


def _report_of(options: Options) -> Report | None:
    folder = options.script
    return files.load(folder) if folder is not None and folder.is_dir() else None


def _original(report: Report | None) -> list[_Asked]:
    """Return the original script of a report; none if it needs files beside it, which a report does not have."""
    if report is None or report.original is None or not report.original.source:
        return []
    words = report.command.split()
    if "--files" in words or "-m" in words or "--test" in words:
        return []
    return [_Asked(f"{report.original.name} (the original)", Repro(report.original.source, report.arguments))]


def _on_a_wheel(stack: ExitStack, session: Session, build: Build, patch: Patch, *, reverse: bool) -> _Builds:
    """Return an installed build, and a copy of it with other Python files."""
    base = stack.enter_context(session.provider.environment(build))
    maker = session.sources.maker(build)
    # Made before the first question, as a patch that does not apply needs no answer.
    patched = stack.enter_context(patched_build(maker, build, base, patch, reverse=reverse))
    return _Builds(lambda: nullcontext(base), lambda: nullcontext(patched))


def _built_from_source(
    stack: ExitStack, session: Session, build: Build, patch: Patch, history: History, *, reverse: bool
) -> _Builds:
    """Return the commit of an installed build, built here by ``--build-cmd``, without a patch and with it.

    Both are built, as a build of the user's own may differ from a wheel in more than the patch.
    """
    maker, command = session.sources.maker(build), session.options.build_cmd
    assert command is not None
    like = maker.host_venv(build)
    stack.callback(maker.release, build)
    if like.facts.git_version in (None, "Unknown"):
        raise InputError(f"torch {build} does not say which commit it was built from: name another with --torch")
    commit = history.commit(like.facts.git_version or "")
    builder = CommitBuilder(history, command, session.sources.cache, like, session.display.result)
    builder.check(commit, patch, reverse=reverse)

    def identified(environment: Venv, *parts: str) -> Venv:
        """Return an environment whose answers are kept apart from those of a wheel of the same commit."""
        identity = hashlib.sha1("\0".join((command, commit.sha, *parts)).encode()).hexdigest()
        return replace(environment, facts=replace(environment.facts, git_version=identity))

    @contextmanager
    def plain() -> Iterator[Environment]:
        with builder.built(commit) as environment:
            yield identified(environment)

    @contextmanager
    def patched() -> Iterator[tuple[Environment, tuple[str, ...]]]:
        with builder.built(commit, patch, reverse=reverse) as environment:
            yield identified(environment, patch.digest, str(reverse)), tuple(set(patch.files) - set(patch.left_out))

    return _Builds(plain, patched)


def _effects(
    session: Session, builds: _Builds, scripts: Sequence[_Asked], *, reverted: bool
) -> tuple[tuple[str, ...], list[ScriptEffect]]:
    """Ask every script without the patch, then with it; return the files that differ, and the effects."""
    display, count = session.display, 2 * len(scripts)
    before, effects = [], []
    with builds.plain() as environment, session.oracle_in(environment) as oracle:
        for number, one in enumerate(scripts):
            display.status(f"{one.name} as it is", number, count)
            before.append(count_runs(session, oracle, one.repro, observe(session, oracle, one.repro), Settings()))
    with builds.patched() as (environment, changed), session.oracle_in(environment) as oracle:
        for number, (one, seen) in enumerate(zip(scripts, before), len(scripts)):
            display.status(f"{one.name} with the patch", number, count)
            effects.append(_effect(session, oracle, one, seen, reverted=reverted))
            display.result(f"{one.name}: {effects[-1].effect}")
    return tuple(sorted(changed)), effects


def _effect(session: Session, patched: Oracle, asked: _Asked, before: Observed, *, reverted: bool) -> ScriptEffect:
    """Ask one script with a patch. Only what every run shows is evidence."""
    name, repro = asked.name, asked.repro
    if before.verdict not in ("mismatch", "none"):
        return ScriptEffect(name, _words(before), "not asked", Effect.UNTESTABLE)
    after = count_runs(session, patched, repro, observe(session, patched, repro), Settings())
    passes, fails = (Effect.CAUSES, Effect.FIXES) if reverted else (Effect.FIXES, Effect.CAUSES)
    if before.certain_mismatch is None:
        effect = {"mismatch": fails, "none": Effect.NONE}.get(after.verdict, Effect.UNTESTABLE)
        return ScriptEffect(name, _words(before), _words(after), effect)
    question = Question(repro, before.certain_mismatch.signature, strictness=Strictness.TOLERANT)
    answer = BuildAnswer.from_verdict(patched.ask(question))
    if answer.status is BuildStatus.BAD and after.verdict == "mismatch":
        effect = Effect.NONE
    elif answer.status is BuildStatus.GOOD and after.verdict == "none":
        effect = passes
    else:
        effect = Effect.OTHER if after.verdict == "mismatch" else Effect.UNTESTABLE
    return ScriptEffect(name, _words(before), _words(after), effect)


def _words(observed: Observed) -> str:
    """Return a verdict in words."""
    if observed.mismatch is not None and observed.verdict == "mismatch":
        return observed.mismatch.summary
    return "agrees" if observed.verdict == "none" else f"{observed.verdict}: {observed.reason}"


def _opened(stack: ExitStack, options: Options, path: Path) -> _Asked:
    folder = unique_folder("files")
    stack.callback(remove_tree, folder)
    return _Asked(str(path), opened_repro(replace(options, script=path), folder).repro)


def _scripts_in(places: Sequence[Path]) -> Iterator[Path]:
    for place in places:
        if not place.is_dir():
            yield place
            continue
        found = sorted(place.glob("*.py")) or sorted(place.glob(f"*/{files.MINIMAL}"))
        if not found:
            raise InputError(f"--also {place}: there is no script in this folder")
        yield from found
