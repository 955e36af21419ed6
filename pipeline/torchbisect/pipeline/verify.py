"""Show what a patch of PyTorch does to a bug: ask scripts on one build, without the patch and with it."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from torchbisect.bisect.search.evidence import BuildAnswer, BuildStatus
from torchbisect.bisect.sources.patch import read_patch
from torchbisect.bisect.sources.patched_build import patched_build
from torchbisect.containers.environment import Environment
from torchbisect.containers.store.removal import remove_tree
from torchbisect.containers.store.run_folder import unique_folder
from torchbisect.core.errors import Exit, InputError, InstallFailed
from torchbisect.core.repro import Repro, Settings
from torchbisect.core.text_enum import TextEnum
from torchbisect.pipeline.clone import open_history
from torchbisect.pipeline.local_provider import LocalProvider
from torchbisect.pipeline.options import Options
from torchbisect.pipeline.progress import Display
from torchbisect.pipeline.run import OpenProvider
from torchbisect.pipeline.script import opened_repro
from torchbisect.pipeline.search_scope import failing_build
from torchbisect.pipeline.session import Session
from torchbisect.pipeline.stages.observe import Observed, count_runs, observe
from torchbisect.probe.agent_client import AgentFailed
from torchbisect.probe.judge.matching import Strictness
from torchbisect.probe.oracle import Oracle, Question
from torchbisect.reports import files


class Effect(TextEnum):
    """The effect of a change on one script. ``FIXES`` and ``CAUSES`` speak of the change also where it was reverted."""

    FIXES = "fixes it"
    CAUSES = "causes it"
    NONE = "no effect"
    OTHER = "another mismatch"
    UNTESTABLE = "cannot be told"


@dataclass(frozen=True)
class ScriptEffect:
    """A script without and with a patch.

    Attributes:
        script: its name.
        without: what it does on the build as it is, in words.
        patched: what it does with the patch, or with the patch reverted.
    """

    script: str
    without: str
    patched: str
    effect: Effect


@dataclass(frozen=True)
class Verification:
    """The effect of a patch on a script, and on others.

    Attributes:
        patch: what the user typed.
        reverted: the patch was taken back from the build, not added to it.
        build: the build.
        files: the Python files that differ.
        scripts: the effect on the script, then on those of ``--also``.
        reason: one line that says why nothing could be shown, else ``None``.
    """

    patch: str
    reverted: bool
    build: str
    files: tuple[str, ...]
    scripts: tuple[ScriptEffect, ...]
    reason: str | None = None

    @property
    def broken(self) -> tuple[str, ...]:
        """The other scripts that work without the patch and go wrong with it."""
        worse = Effect.FIXES if self.reverted else Effect.CAUSES
        return tuple(one.script for one in self.scripts[1:] if one.effect is worse)

    @property
    def exit_code(self) -> Exit:
        """0 if the patch has an effect, 1 if it has none, 3 if it breaks others besides, 6 if it cannot be told."""
        if self.reason is not None or not self.scripts or self.scripts[0].effect is Effect.UNTESTABLE:
            return Exit.UNTESTABLE
        if self.broken:
            return Exit.PARTIAL
        return Exit.NO_MISMATCH if self.scripts[0].effect is Effect.NONE else Exit.FINISHED

    @property
    def sentence(self) -> str:
        """The result in one line."""
        done = f"{'reverting' if self.reverted else 'applying'} {self.patch} on torch {self.build}"
        if self.reason is not None:
            return f"{done} could not be shown: {self.reason}"
        first = self.scripts[0]
        words = {
            Effect.FIXES: "brings the mismatch back: the change fixes it" if self.reverted else "makes it pass",
            Effect.CAUSES: "makes it pass: the change causes it" if self.reverted else "makes it fail",
            Effect.NONE: "changes nothing for it",
            Effect.OTHER: f"gives another mismatch ({first.patched})",
            Effect.UNTESTABLE: f"does not tell: {first.patched}",
        }[first.effect]
        more = f"; it breaks {', '.join(self.broken)}" if self.broken else ""
        return f"{done} {words} ({first.script}){more}"

    def to_json(self) -> dict[str, Any]:
        """Return the form of ``--json``."""
        scripts = [{**asdict(one), "effect": one.effect.value} for one in self.scripts]
        return {**asdict(self), "scripts": scripts, "broken": list(self.broken), "summary": self.sentence}


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
        options: their script is the one with the bug, or a folder with a report, of which the shrunk script is taken.
        name: the patch: a file, a commit or a pull request.
        also: further scripts that the patch may break; a folder stands for the scripts in it.

    Raises:
        InputError: a script or the patch can't be used.
        MachineError: this machine can't do its part.
    """
    options = with_reported_script(options)
    display = Display(options.verbosity)
    history = functools.cache(lambda: open_history(options, display.result))
    with ExitStack() as stack:
        stack.enter_context(display.working("Verify"))
        patch = read_patch(name, history)
        if options.git is not None:
            patch = replace(patch, objects=history().objects)
        scripts = [_opened(stack, options, path) for path in (options.script, *_scripts_in(also)) if path is not None]
        provider = open_provider(options, display)
        stack.callback(provider.close)
        session = Session.open(options, display, provider, display.warn)
        stack.callback(session.workspace.close)
        build = failing_build(options, session.sources, display.warn)
        base = stack.enter_context(provider.environment(build))
        try:
            maker = session.sources.maker(build)
            with patched_build(maker, build, base, patch, reverse=reverted) as (patched, changed):
                effects = list(_effects(session, (base, patched), scripts, reverted=reverted))
        except (InstallFailed, AgentFailed) as error:
            return Verification(name, reverted, str(build), patch.python, (), str(error))
    return Verification(name, reverted, str(build), changed, tuple(effects))


def with_reported_script(options: Options) -> Options:
    """Return the options; of a folder with a report the shrunk script is taken, and the build where it fails."""
    folder = options.script
    if folder is None or not folder.is_dir():
        return options
    report = files.load(folder)
    minimal = folder / files.MINIMAL
    if report.minimal is None or report.environment is None or not minimal.is_file():
        raise InputError(f"{folder} has no {files.MINIMAL}: shrink the script first, or name the script itself")
    return replace(options, script=minimal, torch=options.torch or report.environment.torch)


def _effects(
    session: Session,
    environments: tuple[Environment, Environment],
    scripts: Sequence[tuple[str, Repro]],
    *,
    reverted: bool,
) -> Iterator[ScriptEffect]:
    with session.oracle_in(environments[0]) as plain, session.oracle_in(environments[1]) as patched:
        for number, (name, repro) in enumerate(scripts):
            session.display.status(f"{name}, {number + 1} of {len(scripts)}", number, len(scripts))
            effect = script_effect(session, plain, patched, name, repro, reverted=reverted)
            session.display.result(f"{name}: {effect.effect}")
            yield effect


def script_effect(
    session: Session, plain: Oracle, patched: Oracle, name: str, repro: Repro, *, reverted: bool
) -> ScriptEffect:
    """Ask one script without and with a patch. Only what every run shows is evidence."""
    before = count_runs(session, plain, repro, observe(session, plain, repro), Settings())
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


def _opened(stack: ExitStack, options: Options, path: Path) -> tuple[str, Repro]:
    folder = unique_folder("files")
    stack.callback(remove_tree, folder)
    own = path == options.script
    repro = opened_repro(replace(options, script=path, arguments=options.arguments if own else ()), folder).repro
    return str(path), repro


def _scripts_in(places: Sequence[Path]) -> Iterator[Path]:
    for place in places:
        if not place.is_dir():
            yield place
            continue
        found = sorted(place.glob("*.py")) or sorted(place.glob(f"*/{files.MINIMAL}"))
        if not found:
            raise InputError(f"--also {place}: there is no script in this folder")
        yield from found
