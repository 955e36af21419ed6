"""Classify an observation: the mismatch that it shows, or the reason why it is no evidence."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from torchbisect.core.verdict import MismatchKind
from torchbisect.probe.agent.compare.same_exception import is_same_exception
from torchbisect.probe.judge.environment_faults import (
    Untestable,
    ended_badly,
    environment_fault,
    missing_api,
    missing_module,
    needs_gpu,
    says_that_a_gpu_is_missing,
)
from torchbisect.probe.judge.matching import Strictness, matches
from torchbisect.probe.judge.normalize import global_name, happens_in_call
from torchbisect.probe.judge.observation import Difference, Ending, Observation, Raised
from torchbisect.probe.judge.signature import Signature, own_statement

# Last words of the C library and of the C++ runtime before they end a process.
_ABORT_MESSAGE = re.compile(
    r"^(?:double free|free\(\)|malloc|munmap_chunk|realloc|corrupted|\*\*\* stack smashing|terminate called after).*"
    r"(?:\n  what\(\):.*)?|^.*Assertion .* failed.*",
    re.MULTILINE,
)
# The folders of a path: those of a kernel are the run's own, and longer than what is said about it.
_NO_GPU = Untestable("no-cuda", "the script needs a GPU, and there is none that this build can use")
_FOLDERS = re.compile(r"(?<![\w./:])/(?:[\w.+@-]+/)+")


@dataclass(frozen=True)
class Mismatch:
    """The difference between the compiled run and the eager one.

    Attributes:
        signature: what makes another mismatch the same bug.
        place: where it is seen: ``call 0 output[1]``; for an ending ``call 0 ending``, or ``the script's end``
            if no call raised.
        attribute: what differs there.
        detail: figures of a difference in values.
        others: the signatures of every other difference.
        consequence: how the compiled run ended because of it, where the script itself notices; else empty.
    """

    kind: MismatchKind
    summary: str
    signature: Signature
    place: str = ""
    attribute: str = ""
    eager: str = ""
    compiled: str = ""
    detail: dict[str, Any] = field(default_factory=dict, hash=False)
    others: tuple[Signature, ...] = ()
    consequence: str = ""

    @property
    def signatures(self) -> tuple[Signature, ...]:
        """The signatures of every difference, the mismatch's own first."""
        return (self.signature, *self.others)

    def includes(self, signature: Signature, strictness: Strictness) -> bool:
        """Return True if one of the differences is this bug."""
        return any(matches(signature, seen, strictness) for seen in self.signatures)


def find_mismatch(observation: Observation, source: str = "") -> Mismatch | None:
    """Return the mismatch of the two runs; ``None`` if they agree.

    How the runs ended comes first, but for one case: when the script itself notices that something is wrong (its
    assertion fails, it compares and exits) and the record shows what, then that is the mismatch, because it outlives
    the removal of the assertion. ``source`` is the script, for its assertions and its own names.
    """
    ending = _ending_mismatch(observation, source)
    seen = [_difference_mismatch(item, source) for item in _independent_differences(observation, ending, source)]
    ended = [ending] if ending is not None else []
    # Memory that an output shares is seldom what a script's own assertion is about.
    only_shares = all(item.kind is MismatchKind.ALIASING for item in seen)
    both = [*ended, *seen] if only_shares else [*seen, *ended]
    if not both:
        return None
    first, rest = both[0], both[1:]
    others = tuple(dict.fromkeys(item.signature for item in rest if item.signature != first.signature))
    return _with_others(first, others, ending.summary if ending is not None and first is not ending else "")


def find_untestable(observation: Observation) -> Untestable | None:
    """Return the reason why the observation is no evidence, or ``None`` if it is."""
    eager, compiled = observation.eager, observation.compiled
    if "forged" in (eager.how, compiled.how):
        return Untestable(
            "forged-answer", "; ".join(observation.notes) or "the agent sent something else than an answer"
        )
    for name, run in (("eager", eager), ("compiled", compiled)):
        if run is eager and run.how == "timed-out":
            # Then nothing was compiled, and there is no other run to judge.
            return Untestable("timed-out", f"the eager run did not end within {eager.time_limit}")
        if run.how == "lost":
            return Untestable("lost", f"the {name} run ended without a message", transient=True)
        if run.how == "out-of-memory":
            return Untestable("out-of-memory", f"the {name} run used up the memory that it is allowed")
        if run.how == "over-limit":
            return Untestable(f"too-many-{run.limit}", f"the {name} run exceeded the limit on {run.limit}")
    if eager.waited_for_input:
        return Untestable("reads-input", "the script reads standard input, which is empty here")
    fault = environment_fault(observation)
    if fault is not None:
        return fault
    if eager.how == "signalled":
        return Untestable("crashes-in-eager", f"the eager run was ended by {eager.signal}")
    return _failing_eager(observation) or _nothing_compiled(observation) or _other_numbers(observation)


def _other_numbers(observation: Observation) -> Untestable | None:
    """Return the fault of runs that differ only in the order in which they draw random numbers."""
    if not observation.drawn or observation.differences:
        return None
    return Untestable("random-numbers", "the runs differ only in the order in which they draw random numbers")


def same_exception_in_both(observation: Observation, signature: Signature, source: str = "") -> bool:
    """Return True if both runs end with the exception that only the eager run of a mismatch raised.

    A script that fails without ``torch.compile`` is no evidence by itself. For a mismatch in which compiled code raised
    nothing, or something else than eager, it shows that this torch is right.
    """
    eager = observation.eager
    if not _ends_alike(observation):
        return False
    found = _failed(MismatchKind.MISSING_RAISE, eager, observation, source).signature
    if signature.kind is MismatchKind.MISSING_RAISE:
        # In the same words; where in torch it is raised may change from build to build.
        return matches(signature, replace(found, frames_torch=signature.frames_torch), Strictness.STRICT)
    return signature.kind is MismatchKind.RAISES_DIFFERENTLY and signature.eager == found.ending


def agreed_ending(observation: Observation, source: str = "") -> str | None:
    """Return how both runs ended, if compiled code raised what eager code raises; ``None`` for any other ending.

    The exception must come out of a call of what is compiled: a script that fails elsewhere has not been tested.
    """
    eager, compiled = observation.eager, observation.compiled
    if not (eager.raised_in_call and compiled.raised_in_call) or observation.differences:
        return None
    return _ending_text(compiled, source) if _ends_alike(observation) else None


def agreement(observation: Observation, untestable: Untestable | None, source: str = "") -> str | None:
    """Return how both runs ended, if that is why an observation is no evidence and they agree in it, else ``None``."""
    failed = untestable is not None and untestable.reason == "fails-in-eager"
    return agreed_ending(observation, source) if failed else None


def _with_others(first: Mismatch, others: tuple[Signature, ...], consequence: str) -> Mismatch:
    values = {name: getattr(first, name) for name in ("place", "attribute", "eager", "compiled", "detail")}
    return Mismatch(first.kind, first.summary, first.signature, others=others, consequence=consequence, **values)


def _ending_mismatch(observation: Observation, source: str) -> Mismatch | None:
    eager, compiled = observation.eager, observation.compiled
    if compiled.how == "signalled" and eager.how != "signalled":
        return _ended(MismatchKind.CRASH, Signature.of_crash(compiled), observation)
    if compiled.how == "timed-out" and eager.how != "timed-out":
        found = _ended(MismatchKind.HANG, Signature.of_hang(), observation)
        return replace(found, summary=f"{found.summary} in {eager.seconds:.1f} s")
    if not ended_badly(eager) and ended_badly(compiled):
        return _failed(MismatchKind.RAISES, compiled, observation, source)
    if ended_badly(eager) and not ended_badly(compiled):
        return _failed(MismatchKind.MISSING_RAISE, eager, observation, source)
    if ended_badly(eager) and not _fail_alike(observation, source):
        found = _failed(MismatchKind.RAISES_DIFFERENTLY, compiled, observation, source)
        expected = _failed(MismatchKind.MISSING_RAISE, eager, observation, source).signature.ending
        return replace(found, signature=replace(found.signature, eager=expected))
    return None


def _failed(kind: MismatchKind, ending: Ending, observation: Observation, source: str) -> Mismatch:
    if ending.raised is not None:
        return _ended(kind, Signature.of_raised(kind, ending.raised, source), observation, source)
    return _ended(kind, Signature.of_exit(kind, ending, source), observation, source)


def _ended(kind: MismatchKind, signature: Signature, observation: Observation, source: str = "") -> Mismatch:
    eager, compiled = _ending_text(observation.eager, source), _ending_text(observation.compiled, source)
    return Mismatch(
        kind=kind,
        summary=f"compiled {compiled}, eager {eager}",
        signature=signature,
        place=_place_of_ending(observation),
        attribute="ending",
        eager=eager,
        compiled=compiled,
    )


def _place_of_ending(observation: Observation) -> str:
    """Return the call out of which the exception came that ended one of the runs, the compiled one if it failed."""
    ending = observation.compiled if observation.compiled.raised is not None else observation.eager
    if ending.raised_in_call and ending.call_seconds:
        return f"call {len(ending.call_seconds) - 1} ending"
    return "the script's end"


def _ending_text(ending: Ending, source: str = "") -> str:
    if ending.how == "raised" and ending.raised is not None:
        statement = own_statement(ending.raised, source)
        if statement is not None and statement.kind == "assert":
            return f"fails the script's own assertion: {statement.text}"[:300]
        return f"raises {_short(ending.raised)}"
    if ending.how == "exited":
        return f"exits with status {ending.status}" if ending.status else "finishes"
    if ending.how == "signalled":
        said = _ABORT_MESSAGE.search(ending.errors)
        return f"is ended by {ending.signal}" + (f": {_cut(said.group(0))}" if said else "")
    if ending.how == "timed-out":
        return f"does not end within {ending.allowed or ending.seconds:.0f} s"
    return "finishes" if ending.how == "finished" else f"ends {ending.how}"


def _short(raised: Raised) -> str:
    name = raised.name.removeprefix("builtins.")
    lines = raised.message.strip().splitlines()
    empty = not lines or lines[0].startswith("from user code:")
    return name if empty else f"{name}: {_cut(lines[0])}"


def _cut(text: str) -> str:
    """Return the beginning of a text on one line, with only the last part of each path."""
    return " ".join(_FOLDERS.sub("…/", text).split())[:200]


def _fail_alike(observation: Observation, source: str) -> bool:
    """Return True if two failed runs have the same cause, whatever exceptions the compiler wraps around it."""
    eager, compiled = observation.eager, observation.compiled
    if eager.raised is not None and compiled.raised is not None:
        if eager.raised_in_call and compiled.raised_in_call:
            return is_same_exception(asdict(eager.raised), asdict(compiled.raised))
        ours = Signature.of_raised(MismatchKind.RAISES, eager.raised, source)
        theirs = Signature.of_raised(MismatchKind.RAISES, compiled.raised, source)
        return matches(ours, theirs, Strictness.TOLERANT)
    return (eager.how, eager.status, eager.signal) == (compiled.how, compiled.status, compiled.signal)


def _independent_differences(observation: Observation, ending: Mismatch | None, source: str) -> list[Difference]:
    """Return the differences that are not a consequence of how the runs ended."""
    differences = list(observation.differences)
    if ending is None:
        return differences
    failed = observation.compiled if ended_badly(observation.compiled) else observation.eager
    if not _ended_by_script(failed, ending.signature):
        return []
    if failed.raised is not None and _inside_compiled_call(failed.raised):
        # The call that was cut short has no record, so what earlier calls show came first; the rest followed from it.
        return [item for item in differences if happens_in_call(item.place)]
    if failed.raised is not None:
        # What the script would have done after its assertion is missing from its globals, which tells nothing.
        asked = own_statement(failed.raised, source)
        words = set(re.findall(r"\w+", asked.text)) if asked is not None else set()
        return [item for item in differences if global_name(item.place) in (None, *words)]
    return differences


def _ended_by_script(failed: Ending, signature: Signature) -> bool:
    """Return True if the script itself ended the run: an exit, or an exception raised by its own code."""
    if failed.how == "exited":
        return True
    return failed.how == "raised" and (signature.subjects is not None or not signature.frames_torch)


def _inside_compiled_call(raised: Raised) -> bool:
    """Return True if the exception passed through a compiled region: dynamo's frames are between the script's own."""
    files = [frame.file for frame in raised.frames if frame.where == "torch"]
    return any("_dynamo/" in file for file in files)


def _difference_mismatch(difference: Difference, source: str) -> Mismatch:
    return Mismatch(
        kind=difference.kind,
        summary=_difference_text(difference),
        signature=Signature.of_difference(difference, source),
        place=difference.place,
        attribute=difference.attribute,
        eager=difference.eager,
        compiled=difference.compiled,
        detail=dict(difference.detail),
    )


def _difference_text(difference: Difference) -> str:
    if difference.attribute == "exception":
        eager, compiled = (
            "returns" if side == "returned" else f"raises {side}" for side in (difference.eager, difference.compiled)
        )
        return f"compiled {compiled}, eager {eager} ({difference.place})"
    named = "" if difference.attribute in ("value", "values") else f"{difference.attribute}="
    words = f"compiled gives {named}{difference.compiled} where eager gives {difference.eager}"
    if not named:
        figures = difference.detail
        if figures.get("count") is not None and figures.get("numel"):
            words += f", {figures['count']} of {figures['numel']} elements differ"
    return f"{words} ({difference.place})"


def _failing_eager(observation: Observation) -> Untestable | None:
    eager = observation.eager
    if not ended_badly(eager):
        return None
    if needs_gpu(eager):
        return _NO_GPU
    module = missing_module(observation)
    if module is not None:
        return Untestable("missing-module", f"the script imports {module}, which is not installed: add --with {module}")
    if eager.raised is not None and _ends_alike(observation):
        api = missing_api(observation)
        if api is not None:
            return Untestable("missing-api", f"the script uses something that this torch does not have: {api}")
        reason = "syntax-error" if eager.raised.name.endswith("SyntaxError") else "fails-in-eager"
        return Untestable(reason, f"without torch.compile the script {_ending_text(eager)}")
    if eager.how == "exited" and _ends_alike(observation):
        return Untestable("fails-in-eager", f"without torch.compile the script {_ending_text(eager)}")
    return None


def _ends_alike(observation: Observation) -> bool:
    if observation.compiled.how == "not-run":
        return True
    return ended_badly(observation.compiled) and _fail_alike(observation, "")


def _nothing_compiled(observation: Observation) -> Untestable | None:
    if observation.compiled.compiled or ended_badly(observation.compiled) or ended_badly(observation.eager):
        return None
    if says_that_a_gpu_is_missing(observation.eager):
        return _NO_GPU
    return Untestable("not-compiled", "the script never calls anything that torch.compile made")
